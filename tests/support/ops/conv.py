"""Instances of convolutions: few channels, small windows, every layout."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from relax_egraph.ir.ops.window import SPATIAL
from tests.support.ops.case import FLOATS, Case, Draw, Sampler

ERROR = 2e-5


def ints(draw: Draw, count: int, low: int, high: int) -> tuple[int, ...]:
    """A value for each axis, or one for all of them."""
    return tuple(draw.integer(low, high) for _ in range(1 if draw.chance(0.3) else count))


def padding(draw: Draw, rank: int, most: int) -> tuple[int, ...]:
    return tuple(draw.integer(0, most) for _ in range(draw.choice([1, rank, 2 * rank])))


def layout(draw: Draw, letters: str) -> str:
    if draw.chance():
        return letters
    return draw.choice([f"N{letters[2:]}C", "".join(draw.random.sample(letters, len(letters)))])


def kernel_layout(draw: Draw, letters: str) -> str:
    if draw.chance():
        return letters
    return draw.choice(
        [f"{letters[2:]}{letters[1::-1]}", "".join(draw.random.sample(letters, len(letters)))]
    )


def shape(layout: str, extents: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(extents[letter] for letter in layout)


def every(values: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return values * rank if len(values) == 1 else values


def conv(rank: int, transposed: bool, draw: Draw) -> Case:
    letters, groups = SPATIAL[rank], draw.choice([1, 1, 2, 3])
    dtype = draw.choice((*FLOATS, "float32", "int8", "int32"))
    out_dtype = draw.choice([None, None, "", "void", "float64" if dtype in FLOATS else "int32"])
    strides, dilation = ints(draw, rank, 1, 3), ints(draw, rank, 1, 2)
    pads = padding(draw, rank, 0 if draw.chance(0.3) else 2)
    sizes = [draw.integer(1, 3) for _ in range(rank)]
    both = every(pads, rank)
    attrs: dict[str, Any] = {
        "strides": strides,
        "padding": pads,
        "dilation": dilation,
        "groups": groups,
        "data_layout": layout(draw, f"NC{letters}"),
        "kernel_layout": kernel_layout(draw, f"{'IO' if transposed else 'OI'}{letters}"),
        "out_layout": draw.choice([None, layout(draw, f"NC{letters}")]),
        "out_dtype": out_dtype,
    }
    data = {"N": draw.choice([0, 1, 2, 3]), "C": groups * draw.choice([0, 1, 1, 2])}
    o = draw.choice([0, 1, 2, 2])
    kernel = {"O": o, "I": data["C"]} if transposed else {"O": o * groups, "I": data["C"] // groups}
    for k, letter in enumerate(letters):
        reach = every(dilation, rank)[k] * (sizes[k] - 1) + 1
        around = both[k] + both[-rank + k]
        least = 1 - min(reach - around - 1, 0) if transposed else reach - around
        data[letter] = draw.integer(max(least, 1), max(least, 1) + 3)
        kernel[letter] = sizes[k]
    if transposed:
        most = min(every(strides, rank)) - 1
        attrs["output_padding"] = ints(draw, rank, 0, most)
    x = draw.array(shape(attrs["data_layout"], data), dtype)
    w = draw.array(shape(attrs["kernel_layout"], kernel), dtype)
    return Case((x, w), attrs, ERROR)


SAMPLERS: Mapping[str, Sampler] = {
    **{f"nn.conv{rank}d": partial(conv, rank, False) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": partial(conv, rank, True) for rank in (1, 2, 3)},
}
