"""Traits of operators: the sources of dtype and shape, inferred from the struct-info rule.

The rule is applied to small operands of every dtype; a property that all answers share is a
trait of the operator.  So the vocabulary and dtype facts of a new operator follow from its
definition.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import REQUIRED, AttrParam, Op, Operand
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)

_DTYPES = ("float32", "float64", "int64", "bool")
_SAMPLES: dict[str, Any] = {
    "int": 1,
    "ints": (0,),
    "int or ints": (0,),
    "float": 1.0,
    "floats": (),
    "bool": False,
    "str": "float32",
}
"""A value of each kind of attribute."""

_OWN_SAMPLES: Mapping[str, dict[str, Any]] = {
    "einsum": {"subscripts": "ij->ij"},
    "nn.pad": {"pad_width": (0, 0, 0, 0)},
}
"""Attributes of operators that refuse the general samples, for operands of rank 2."""

_DTYPE_ATTRS = ("float32", "float64", "int32", "bool")
"""Values of an attribute that names a dtype."""

NO_DTYPE = ("", "void")
"""Values of such an attribute that leave the dtype to the operands, if they are allowed."""

_MAX_RANK = 4

_EXTENTS = (5, 7)
"""Extents that no sample has."""

_OPERAND, _AXES = (5, 7, 11), (2, 0, 1)
"""Extents of an operand, and an order of its axes that is not its own inverse."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of an operator that returns a tensor, or a tuple of tensors.

    `in_kernel`: it can be computed within a kernel, as it is fusible and the result's shape follows
    from the operands' shapes.  `dtype` is the source of the result's dtype: the name of an operand,
    the name of an attribute (unless its value is in `NO_DTYPE`), a dtype in quotes, or empty if
    there is no such source.  `shape` is the name of the operand that is the result's shape, as for
    a reshape; empty if there is none.  `order` is the name of the attribute that lists the axis of
    the operand for each axis of the result, as for a permutation; empty if there is none.
    """

    op: Op
    in_kernel: bool
    dtype: str
    shape: str = ""
    order: str = ""
    makes_tuple: bool = False


def traits_of(op: Op) -> Traits | None:
    """The traits of `op`; ``None`` if rules cannot use it: its operands or results have no sort."""
    if op.intrinsic or not op.pure or any(o.kind == "any" for o in op.operands):
        return None
    unknown: list[str | None] = [None] * len(op.operands)
    ranks = next((r for r in _ranks(op) if _ask(op, r, unknown)), None)
    result = _ask(op, ranks, unknown)
    if not isinstance(result, TensorStructInfo):
        return (
            Traits(op, False, "", makes_tuple=True) if isinstance(result, TupleStructInfo) else None
        )
    plain = all(o.kind in ("tensor", "shape") and not o.optional for o in op.operands)
    known = plain and op.fusible and ranks is not None and result.dims is not None
    return Traits(op, known, _dtype(op, ranks) if plain else "", _shape(op), _order(op))


def _ranks(op: Op) -> Iterator[tuple[int, ...]]:
    """Candidate ranks of the operands: first one rank for all, then vectors beside a tensor."""
    count = len(op.operands)
    yield from ((rank,) * count for rank in (2, 3, 4, 1, 0))
    yield from ((rank, *(1,) * (count - 1)) for rank in (2, 3, 4) if count)
    of_kind = {"prim": range(1)}  # which has no rank
    yield from product(*(of_kind.get(o.kind, range(_MAX_RANK + 1)) for o in op.operands))


def _ask(
    op: Op,
    ranks: tuple[int, ...] | None,
    dtypes: list[str | None],
    attrs: Mapping[str, Any] | None = None,
) -> StructInfo | None:
    """The struct info of `op` on operands whose extents are all 1; ``None`` if it refuses them."""
    infos = [
        _sample(operand, None if ranks is None else ranks[k], dtype)
        for k, (operand, dtype) in enumerate(zip(op.operands, dtypes, strict=True))
    ]
    return _answer(op, infos, attrs or _attrs(op))


def _answer(
    op: Op, infos: Sequence[StructInfo | None], attrs: Mapping[str, Any]
) -> StructInfo | None:
    try:
        return op.rule(*infos, **attrs)
    except IllTyped:
        return None


def _sample(operand: Operand, rank: int | None, dtype: str | None) -> StructInfo | None:
    if operand.optional:
        return None
    shape = None if rank is None else (1,) * rank
    match operand.kind:
        case "shape":
            return ShapeStructInfo(shape, -1 if rank is None else rank)
        case "tensors":
            return TupleStructInfo((tensor(shape, dtype),))
        case "prim":
            return PrimStructInfo("int64", 1)
        case _:
            return tensor(shape, dtype)


def _attrs(op: Op) -> dict[str, Any]:
    """Sample attributes: defaults, or a sample if there is none; a dtype is always explicit."""
    sampled = {
        a.name for a in op.attrs if a.default is REQUIRED or (_is_dtype(a) and not a.default)
    }
    usual = {a.name: _SAMPLES[a.kind] if a.name in sampled else a.default for a in op.attrs}
    return usual | _OWN_SAMPLES.get(op.name, {})


def _is_dtype(attr: AttrParam) -> bool:
    return attr.kind == "str" and attr.name.endswith("dtype")


def _choices(op: Op) -> Iterator[dict[str, Any]]:
    """The sample attributes, then copies with one flag inverted or with another dtype."""
    usual = _attrs(op)
    yield usual
    for attr in op.attrs:
        if attr.kind == "bool":
            yield {**usual, attr.name: not usual[attr.name]}
        elif _is_dtype(attr):
            yield from ({**usual, attr.name: dtype} for dtype in _DTYPE_ATTRS)


def _dtype(op: Op, ranks: tuple[int, ...] | None) -> str:
    """The source of the result's dtype, as in `Traits`."""
    answers: list[tuple[tuple[str, ...], dict[str, Any], str | None]] = []
    for dtypes, attrs in product(_combinations(len(op.operands)), _choices(op)):
        info = _ask(op, ranks, list(dtypes), attrs)
        if isinstance(info, TensorStructInfo):
            answers.append((dtypes, attrs, info.dtype))
    if not answers:
        return ""
    for attr in filter(_is_dtype, op.attrs):
        if all(result == attrs[attr.name] for _, attrs, result in answers):
            return attr.name
    for k, operand in reversed(list(enumerate(op.operands))):
        if operand.kind == "tensor" and all(result == d[k] for d, _, result in answers):
            return operand.name
    only, *others = {result for *_, result in answers}
    return f'"{only}"' if not others and only is not None else ""


def _shape(op: Op) -> str:
    """The shape operand that is the result's shape, for any shapes of tensors."""
    for place, operand in enumerate(op.operands):
        if operand.kind == "shape":
            infos = [_sample(o, None, None) for o in op.operands]
            infos[place] = ShapeStructInfo(_EXTENTS, len(_EXTENTS))
            info = _answer(op, infos, _attrs(op))
            if isinstance(info, TensorStructInfo) and info.dims == _EXTENTS:
                return operand.name
    return ""


def _order(op: Op) -> str:
    """The attribute that lists the operand's axis for each axis of the result."""
    if [o.kind for o in op.operands] != ["tensor"]:
        return ""
    for attr in op.attrs:
        info = None
        if attr.kind == "ints":
            attrs = {**_attrs(op), attr.name: _AXES}
            info = _answer(op, [tensor(_OPERAND, _DTYPES[0])], attrs)
        if isinstance(info, TensorStructInfo) and info.dims == tuple(_OPERAND[a] for a in _AXES):
            return attr.name
    return ""


def _combinations(count: int) -> Iterator[tuple[str, ...]]:
    """Dtypes of the operands: all equal, then all but one equal."""
    for dtype in _DTYPES:
        yield (dtype,) * count
    for k, common, other in product(range(count), _DTYPES, _DTYPES):
        if common != other and count > 1:
            yield (*(common,) * k, other, *(common,) * (count - k - 1))
