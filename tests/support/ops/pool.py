"""Instances of pools: every layout, with windows beyond the borders."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from relax_egraph.ir.ops.window import SPATIAL
from tests.support.ops.case import ANY, FLOATS, Case, Draw, Sampler
from tests.support.ops.conv import ERROR, every, ints, layout, padding, shape


def pool(rank: int, dtypes: Sequence[str], draw: Draw) -> Case:
    letters = SPATIAL[rank]
    sizes, dilation = ints(draw, rank, 1, 3), ints(draw, rank, 1, 2)
    pads = padding(draw, rank, draw.choice([0, 1, 3]))
    attrs: dict[str, Any] = {
        "pool_size": sizes,
        "strides": ints(draw, rank, 1, 3),
        "padding": pads,
        "dilation": dilation,
        "ceil_mode": draw.chance(),
        "count_include_pad": draw.chance(),
        "layout": layout(draw, f"NC{letters}"),
        "out_layout": draw.choice([None, layout(draw, f"NC{letters}")]),
    }
    extents = {"N": draw.choice([0, 1, 2, 3]), "C": draw.choice([0, 1, 2, 3])}
    both = every(pads, rank)
    for k, letter in enumerate(letters):
        reach = every(dilation, rank)[k] * (every(sizes, rank)[k] - 1) + 1
        least = max(reach - both[k] - both[-rank + k], 0)
        extents[letter] = draw.integer(least, least + 4)
    return Case((draw.array(shape(attrs["layout"], extents), draw.choice(dtypes)),), attrs, ERROR)


def adaptive_pool(rank: int, draw: Draw) -> Case:
    letters = SPATIAL[rank]
    extents = {letter: draw.integer(1, 7) for letter in letters}
    attrs: dict[str, Any] = {
        "output_size": draw.choice([None, ints(draw, rank, 1, 8 - rank)]),
        "layout": layout(draw, f"NC{letters}"),
        "out_layout": draw.choice([None, layout(draw, f"NC{letters}")]),
    }
    extents |= {"N": draw.choice([0, 1, 2, 3]), "C": draw.choice([0, 1, 2, 3])}
    return Case((draw.array(shape(attrs["layout"], extents), draw.choice(FLOATS)),), attrs, ERROR)


SAMPLERS: Mapping[str, Sampler] = {
    **{f"nn.max_pool{rank}d": partial(pool, rank, ANY) for rank in (1, 2, 3)},
    **{f"nn.avg_pool{rank}d": partial(pool, rank, FLOATS) for rank in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{rank}d": partial(adaptive_pool, rank) for rank in (1, 2, 3)},
}
