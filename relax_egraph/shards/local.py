"""The work of one device: an operator on tensors of parts, as an operator on one part.

An operator on parts does the same to each if it keeps their axis, the first one, and computes along
others only.  Tensors without that axis, which every device has whole, may be among the operands
where they are broadcast along it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)

SHARD, REPLICATE = "dist.shard", "dist.replicate"
ALL_GATHER, ALL_REDUCE = "dist.all_gather", "dist.all_reduce"

TO_PARTS = (SHARD, REPLICATE)
"""What makes parts of a tensor that every device has; nothing is sent."""

COLLECTIVES = (ALL_GATHER, ALL_REDUCE)
"""What makes a tensor that every device has of parts; it is sent."""


@dataclass(frozen=True, slots=True)
class Local:
    """An operator on one part: the struct info of its operands, its attributes, its result."""

    operands: tuple[StructInfo | None, ...]
    attrs: Mapping[str, Attr]
    result: TensorStructInfo


def on_a_part(
    op: Op,
    operands: Sequence[StructInfo | None],
    in_parts: Sequence[bool],
    attrs: Mapping[str, Attr],
    result: TensorStructInfo,
) -> Local | None:
    """What `op` does to each part; ``None`` if it is not known to do the same to each.

    `operands` are struct infos, as the operator's rule takes them; `in_parts` says which of them
    have an axis of parts.
    """
    rank = result.ndim
    cut = [i for i, has in zip(operands, in_parts, strict=True) if has]
    whole = [i for i, has in zip(operands, in_parts, strict=True) if not has]
    if result.dims is None or rank < 1:
        return None
    if not cut:
        inner: Mapping[str, Attr] | None = attrs if op.name == SPREADS and _widens(whole) else None
    elif op.elementwise:
        fits = all(_rank(i) == rank for i in cut) and all(_rank(i) < rank for i in whole)
        inner = attrs if fits else None
    elif op.name in _INNER:
        inner = _INNER[op.name](cut, whole, attrs, rank)
    else:
        inner = None
    if inner is None:
        return None
    pairs = zip(operands, in_parts, strict=True)
    shaped = op.name in TO_SHAPE
    local = tuple(
        part_of(i) if has or (shaped and isinstance(i, ShapeStructInfo)) else i for i, has in pairs
    )
    try:
        info = op.rule(*local, **inner)
    except IllTyped:
        return None
    expected = part_of(result)
    return Local(local, inner, expected) if _agree(info, expected) else None


def part_of(info: Any) -> Any:
    """The struct info of one part; of a tuple or a shape, without the axis of parts."""
    match info:
        case TensorStructInfo(dims=shape):
            return tensor(None if shape is None else shape[1:], info.dtype, info.ndim - 1)
        case TupleStructInfo(fields=fields):
            return TupleStructInfo(tuple(map(part_of, fields)))
        case ShapeStructInfo(values=values):
            inner = None if values is None else values[1:]
            return ShapeStructInfo(inner, info.ndim - 1)
        case _:
            return info


def _rank(info: StructInfo | None) -> int:
    return info.ndim if isinstance(info, TensorStructInfo) else -1


def _agree(info: StructInfo, expected: TensorStructInfo) -> bool:
    if not isinstance(info, TensorStructInfo) or info.dims is None or expected.dims is None:
        return False
    same_rank = len(info.dims) == len(expected.dims) and info.dtype == expected.dtype
    return same_rank and all(map(dims.equal, info.dims, expected.dims))


# ------------------------------------------------------------------------------ operators

_Infos = Sequence[StructInfo | None]
_Inner = Callable[[_Infos, _Infos, Mapping[str, Attr], int], Mapping[str, Attr] | None]
"""The attributes on one part, by the operands with parts, those without, and the result's rank."""


def _along(name: str) -> _Inner:
    """The operator works along the axes in the attribute `name`, of its first operand."""

    def inner(
        cut: _Infos, whole: _Infos, attrs: Mapping[str, Attr], rank: int
    ) -> Mapping[str, Attr] | None:
        first = cut[0].fields[0] if isinstance(cut[0], TupleStructInfo) else cut[0]
        of, axes = _rank(first), attrs[name]
        if axes is None or isinstance(axes, str | float):
            return None
        several = axes if isinstance(axes, tuple) else (axes,)
        places = [int(a) % of - 1 for a in several]
        if min(places, default=0) < 0:
            return None
        return {**attrs, name: tuple(places) if isinstance(axes, tuple) else places[0]}

    return inner


def _new_axes(
    cut: _Infos, whole: _Infos, attrs: Mapping[str, Attr], rank: int
) -> Mapping[str, Attr] | None:
    axes = attrs["axis"]
    places = [int(a) % rank - 1 for a in axes] if isinstance(axes, tuple) else [-1]
    return {**attrs, "axis": tuple(places)} if min(places, default=0) >= 0 else None


def _permuted(
    cut: _Infos, whole: _Infos, attrs: Mapping[str, Attr], rank: int
) -> Mapping[str, Attr] | None:
    axes = attrs["axes"]
    order = [int(a) % rank for a in axes] if isinstance(axes, tuple) else [-1]
    return {**attrs, "axes": tuple(a - 1 for a in order[1:])} if order[0] == 0 else None


def _to_shape(
    cut: _Infos, whole: _Infos, attrs: Mapping[str, Attr], rank: int
) -> Mapping[str, Attr] | None:
    """A reshape, or a broadcast, that keeps the first axis."""
    x = cut[0]
    known = x.dims if isinstance(x, TensorStructInfo) else None
    shapes = [w.values for w in whole if isinstance(w, ShapeStructInfo)]
    if not known or not shapes or not shapes[0]:
        return None
    return attrs if dims.equal(known[0], shapes[0][0]) else None


def _widens(whole: _Infos) -> bool:
    """Whether a broadcast of a tensor that all devices have adds an axis, for the parts."""
    return 0 <= _rank(whole[0]) < max(i.ndim for i in whole if isinstance(i, ShapeStructInfo))


def _broadcast(
    cut: _Infos, whole: _Infos, attrs: Mapping[str, Attr], rank: int
) -> Mapping[str, Attr] | None:
    return _to_shape(cut, whole, attrs, rank) if _rank(cut[0]) == rank else None


def _product(
    cut: _Infos, whole: _Infos, attrs: Mapping[str, Attr], rank: int
) -> Mapping[str, Attr] | None:
    """Products of matrices in parts; a factor that all devices have has fewer axes."""
    fits = all(_rank(i) == rank for i in cut) and all(1 < _rank(i) < rank for i in whole)
    return attrs if fits and rank > 2 else None


SPREADS = "broadcast_to"
"""What may make equal parts, of a tensor that all devices have."""

TO_SHAPE = ("reshape", "broadcast_to")
"""Operators whose second operand is the shape of the result."""


def _repeated(
    cut: _Infos, whole: _Infos, attrs: Mapping[str, Attr], rank: int
) -> Mapping[str, Attr] | None:
    """Operands that all devices have are broadcast along the axis of parts."""
    return attrs if all(_rank(i) < rank for i in whole) else None


_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "variance", "std")

_INNER: Mapping[str, _Inner] = {
    "matmul": _product,
    "permute_dims": _permuted,
    "reshape": _to_shape,
    "broadcast_to": _broadcast,
    "expand_dims": _new_axes,
    "nn.rotary_embedding": _repeated,
    **dict.fromkeys(("nn.softmax", "nn.log_softmax", "concat", "squeeze"), _along("axis")),
    **dict.fromkeys(("nn.layer_norm", "nn.rms_norm", "strided_slice"), _along("axes")),
    **dict.fromkeys(_REDUCTIONS, _along("axis")),
}
