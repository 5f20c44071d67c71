"""Parts of networks in random programs, as exporters write them, and their parameters."""

from collections.abc import Callable
from contextlib import suppress

from relax_egraph.ir.expr import Expr, Tuple
from relax_egraph.ir.struct_info import Shape
from tests.support.ops.case import Draw
from tests.support.ops.conv import layout
from tests.support.random_arithmetic import (
    activation_written_out,
    affine_chain,
    common_factor,
    repeated,
    slice_of_slice,
    split_and_joined,
    spread,
)
from tests.support.random_attention import attention_of_one_head, attention_written_out, rotary
from tests.support.random_choices import either_way, floats, static, weight
from tests.support.random_idioms import (
    activation_of_branches,
    activation_of_powers,
    chosen,
    truths,
    whole_numbers,
)
from tests.support.random_layouts import between_layouts, convolution_of_any_rank
from tests.support.random_norms import (
    batch_norm,
    layer_norm_written_out,
    norm_of_groups,
    rms_norm_written_out,
    scaled_and_shifted,
)
from tests.support.random_reductions import (
    chained_reductions,
    joined_again,
    mean_from_sum,
    reshaped_by_extents,
    selected_places,
    triangular,
)
from tests.support.random_writer import Rejected, Writer

# --- images -----------------------------------------------------------------------------


def convolution(w: Writer) -> Expr:
    """A norm or scale, a convolution, a norm or bias, and an activation, some of them omitted."""
    x = floats(w, 4)
    data_layout = layout(Draw(w.random), "NCHW") if w.chance(0.5) else "NCHW"
    channel = data_layout.index("C")
    inner = static(x, channel)
    if w.chance(0.3):
        ones = tuple(inner if k == channel else 1 for k in range(1, 4))
        x = scaled_and_shifted(w, x, ones if channel else ())
    groups = w.choice([g for g in (1, 1, 2, 3) if inner % g == 0] or [1])
    size, outer = w.choice((1, 1, 2, 3)), groups * w.choice((1, 2, 4))
    attrs = {
        "strides": (w.choice((1, 1, 2)),) * 2,
        "padding": (w.choice((0, 1)),) * 2,
        "groups": groups,
        "data_layout": data_layout,
    }
    siblings = 2 if w.chance(0.25) else 1
    extents = (outer, inner // groups, size, size)
    branches = [w.op("nn.conv2d", x, weight(w, x, extents), **attrs) for _ in range(siblings)]
    y = branches[0] if siblings == 1 else w.op("concat", Tuple(tuple(branches)), axis=channel)
    if w.chance(0.6):
        y = batch_norm(w, y, channel)
    elif w.chance(0.6):
        y = w.op("add", y, weight(w, y, tuple(outer if k == channel else 1 for k in range(4))))
    return w.op("nn.relu", y) if w.chance(0.5) else y


# --- products ---------------------------------------------------------------------------


def parallel_matmuls(w: Writer) -> object:
    """Products of one value with several weights, each with its own epilogue."""
    x = w.tensor("f", least=1)
    inner, columns = static(x, -1), [w.choice((1, 3, 4, 8)) for _ in range(w.choice((2, 2, 3)))]
    branches: list[Expr] = []
    for extent in columns:
        y = w.op("matmul", x, weight(w, x, (inner, extent)))
        y = either_way(w, "add", y, weight(w, y, (extent,))) if w.chance(0.5) else y
        branches.append(w.op("nn.relu", y) if w.chance(0.3) else y)
    if w.chance(0.4):
        return w.op("concat", Tuple(tuple(branches)), axis=-1)
    if len(set(columns)) == 1:
        gate = w.op(w.choice(("sigmoid", "nn.silu", "nn.gelu")), branches[1])
        return w.op("multiply", branches[0], gate)
    return branches


ATTEMPTS = 4
"""Parts in the order of trial, until one fits."""

PARTS: tuple[Callable[[Writer], object], ...] = (
    *(affine_chain, affine_chain, common_factor, activation_written_out, spread),
    *(activation_of_branches, activation_of_powers, truths, chosen, whole_numbers),
    *(layer_norm_written_out, rms_norm_written_out, norm_of_groups, convolution, convolution),
    *(between_layouts, between_layouts, convolution_of_any_rank, parallel_matmuls),
    *(parallel_matmuls, attention_written_out, attention_written_out, attention_of_one_head),
    *(rotary, split_and_joined, slice_of_slice, repeated, chained_reductions, chained_reductions),
    *(mean_from_sum, joined_again, selected_places, reshaped_by_extents, triangular),
)


def part_of_network(w: Writer) -> object:
    """Write a part of a network that fits existing tensors, which stay readable."""
    for _ in range(ATTEMPTS):
        with suppress(Rejected):
            return w.choice(PARTS)(w)
    raise Rejected


def plan_part(w: Writer) -> list[tuple[Shape, str]]:
    """The parameter of a network: a sequence, images or volumes."""
    first = w.choice((1, 2, *w.extents))
    length = w.choice((3, 5, *w.extents))
    width = w.choice((2, 4, 6, 8))
    dtype = w.choice(("float32", "float32", "float64"))
    if w.chance(0.5):
        return [((first, length, width), dtype)]
    sides = (w.choice((4, 5, 6)),) * w.choice((2, 2, 2, 2, 3))
    return [((first, width, *sides) if w.chance(0.7) else (first, *sides, width), dtype)]
