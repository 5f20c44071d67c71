"""Convolutions: sums of products over windows that move over data."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr
from relax_egraph.ir.op import Op
from relax_egraph.ir.ops.window import SPATIAL
from relax_egraph.raising.emitter import same_shape
from relax_egraph.raising.frame import Labels
from relax_egraph.raising.indices import linear
from relax_egraph.raising.nests import Nest
from relax_egraph.raising.values import Values
from relax_egraph.tir.expr import BufferLoad, TirExpr, TirVar


@dataclass(frozen=True, slots=True)
class Window:
    """The index ``position · stride + tap · dilation``."""

    position: TirVar
    tap: TirVar
    stride: int
    dilation: int


def convolved(values: Values, factors: Sequence[TirExpr], nest: Nest) -> tuple[Expr, Labels] | None:
    """``R.nn.conv1d``, ``conv2d`` or ``conv3d`` of two loads, the windows of one of them.

    Data and weight have the channels in common; the weight has the taps, and the features, which
    the result has.  ``None`` if the factors are no such loads.
    """
    loads = [f for f in factors if isinstance(f, BufferLoad)]
    if len(loads) != 2 or len(factors) != 2 or any(x.buffer not in values.tensors for x in loads):
        return None
    for data, weight in (loads, loads[::-1]):
        read = _indices(data, nest)
        taps = _indices(weight, nest)
        if read is None or taps is None or any(isinstance(t, Window) for t in taps):
            continue
        moved = [r for r in read if isinstance(r, Window)]
        if moved and len(moved) < len(SPATIAL):
            return _call(values, nest, (data, read), (weight, taps), moved)
    return None


Places = Sequence[TirVar | Window]


def _call(
    values: Values,
    nest: Nest,
    data: tuple[BufferLoad, Places],
    weight: tuple[BufferLoad, Places],
    moved: Sequence[Window],
) -> tuple[Expr, Labels] | None:
    """The convolution of `data` and `weight`, laid out as their loads are."""
    (read, places), (kernel, taps) = data, weight
    plain = [p for p in places if isinstance(p, TirVar)]
    batch = [p for p in plain if p not in nest.reduced]
    channels = [p for p in plain if p in nest.reduced]
    window = [m.tap for m in moved]
    over = [t for t in taps if isinstance(t, TirVar)]
    features = [t for t in over if t not in nest.reduced]
    if not len(batch) == len(channels) == len(features) == 1 or features == batch:
        return None
    if {*nest.reduced} != {*channels, *window} or {*over} != {*features, *channels, *window}:
        return None
    letters = dict(zip(window, SPATIAL[len(moved)], strict=True))
    of_data: dict[TirVar | Window, str] = {batch[0]: "N", channels[0]: "C"}
    of_data.update({m: letters[m.tap] for m in moved})
    of_weight = {features[0]: "O", channels[0]: "I", **letters}
    axes: dict[str, TirVar] = {"N": batch[0], "C": features[0]}
    axes.update({letters[m.tap]: m.position for m in moved})
    out_layout = "".join(sorted(axes, key=lambda letter: _order(nest, axes[letter])))
    rank = len(moved)
    spatial = [k for k, p in enumerate(places) if isinstance(p, Window)]
    source, padding = _unpadded(values, values.tensors[read.buffer], spatial)
    result = values.emit(
        f"nn.conv{rank}d",
        source,
        values.tensors[kernel.buffer],
        strides=tuple(m.stride for m in moved),
        padding=padding,
        dilation=tuple(m.dilation for m in moved),
        data_layout="".join(of_data[p] for p in places),
        kernel_layout="".join(of_weight[t] for t in over),
        out_layout=out_layout,
    )
    labels = tuple(axes[letter] for letter in out_layout)
    fits = same_shape(result, tuple(nest.axes[a] for a in labels))
    return (result, labels) if fits else None


def _unpadded(values: Values, data: Expr, spatial: Sequence[int]) -> tuple[Expr, tuple[int, ...]]:
    """`data` without zeros around its axes `spatial`, and how many are before and after each."""
    none = data, (0,) * (2 * len(spatial))
    made = values.emit.call_of(data)
    if made is None or not isinstance(made.op, Op) or made.op.name != "nn.pad":
        return none
    widths = made.attrs["pad_width"]
    if made.attrs["pad_value"] != 0 or not isinstance(widths, tuple):
        return none
    pairs = [(int(b), int(a)) for b, a in zip(widths[::2], widths[1::2], strict=True)]
    if any(pair != (0, 0) for k, pair in enumerate(pairs) if k not in spatial):
        return none
    around = [pairs[k] for k in spatial]
    return made.args[0], (*(b for b, _ in around), *(a for _, a in around))


def _order(nest: Nest, axis: TirVar) -> int:
    """The place of `axis` in the result."""
    return next((k for k, index in enumerate(nest.at) if index is axis), len(nest.at))


def _indices(load: BufferLoad, nest: Nest) -> list[TirVar | Window] | None:
    """What the indices of `load` run over: whole axes, or windows over a dimension."""
    places: list[TirVar | Window] = []
    for index, extent in zip(load.indices, load.buffer.shape, strict=True):
        place = _place(index, extent, nest)
        if place is None:
            return None
        places.append(place)
    return places


def _place(index: TirExpr, extent: Dim, nest: Nest) -> TirVar | Window | None:
    terms = linear(index, nest.axes)
    if terms is None or terms[1] != 0:
        return None
    steps = terms[0]
    match list(steps.items()):
        case [(axis, 1)] if dims.equal(nest.axes[axis], extent):
            return axis
        case [(axis, int(a)), (other, int(b))] if a > 0 and b > 0:
            if axis in nest.reduced and other not in nest.reduced:
                return Window(other, axis, b, a)
            if other in nest.reduced and axis not in nest.reduced:
                return Window(axis, other, a, b)
            return None
        case _:
            return None
