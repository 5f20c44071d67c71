"""What an operator's struct-info rule says of it, found by asking the rule.

The rule is applied to small operands of every dtype; what all answers have in common is a
property of the operator.  So a new operator has its vocabulary and its dtype facts at once.
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
"""Attributes of operators that take none of those, for operands of rank 2."""

_DTYPES_SAID = ("float32", "float64", "int32", "bool")
"""Values of an attribute that names a dtype."""

NO_DTYPE = ("", "void")
"""Values of such an attribute that leave it to the operands, where they are allowed."""

_MAX_RANK = 4

_EXTENTS = (5, 7)
"""Extents that no sample has."""


@dataclass(frozen=True, slots=True)
class Traits:
    """An operator that makes a tensor, or a tuple of them.

    `in_kernel`: it is fusible, and the result's shape follows from the operands' shapes, so it
    can be computed within a kernel.  `dtype` is the name of the operand or attribute whose dtype
    the result has, or a dtype in quotes; empty if neither is so.  An attribute has it unless it is
    one of `NO_DTYPE`.  `shape` is the name of the operand that is the result's shape, as that of a
    reshape is; empty if there is none.
    """

    op: Op
    in_kernel: bool
    dtype: str
    shape: str = ""
    makes_tuple: bool = False


def traits_of(op: Op) -> Traits | None:
    """The traits of `op`; ``None`` of one that rules cannot see: it takes or makes other things."""
    if op.intrinsic or not op.pure or any(o.kind == "any" for o in op.operands):
        return None
    unsaid: list[str | None] = [None] * len(op.operands)
    ranks = next((r for r in _ranks(op) if _ask(op, r, unsaid)), None)
    made = _ask(op, ranks, unsaid)
    if not isinstance(made, TensorStructInfo):
        return (
            Traits(op, False, "", makes_tuple=True) if isinstance(made, TupleStructInfo) else None
        )
    plain = all(o.kind in ("tensor", "shape") and not o.optional for o in op.operands)
    known = plain and op.fusible and ranks is not None and made.dims is not None
    return Traits(op, known, _dtype(op, ranks) if plain else "", _shape(op))


def _ranks(op: Op) -> Iterator[tuple[int, ...]]:
    """Ranks to try the operands at: one for all of them first, then vectors beside a tensor."""
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
    """Defaults; a value where there is none, or no dtype: rules see only calls that say it."""
    asked = {a.name for a in op.attrs if a.default is REQUIRED or (_is_dtype(a) and not a.default)}
    usual = {a.name: _SAMPLES[a.kind] if a.name in asked else a.default for a in op.attrs}
    return usual | _OWN_SAMPLES.get(op.name, {})


def _is_dtype(attr: AttrParam) -> bool:
    return attr.kind == "str" and attr.name.endswith("dtype")


def _choices(op: Op) -> Iterator[dict[str, Any]]:
    """The attributes to ask with, and these with each flag turned and with other dtypes."""
    usual = _attrs(op)
    yield usual
    for attr in op.attrs:
        if attr.kind == "bool":
            yield {**usual, attr.name: not usual[attr.name]}
        elif _is_dtype(attr):
            yield from ({**usual, attr.name: dtype} for dtype in _DTYPES_SAID)


def _dtype(op: Op, ranks: tuple[int, ...] | None) -> str:
    """Where the result's dtype comes from."""
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
    """The operand whose extents the result has, whatever the shapes of tensors are."""
    for place, operand in enumerate(op.operands):
        if operand.kind == "shape":
            infos = [_sample(o, None, None) for o in op.operands]
            infos[place] = ShapeStructInfo(_EXTENTS, len(_EXTENTS))
            info = _answer(op, infos, _attrs(op))
            if isinstance(info, TensorStructInfo) and info.dims == _EXTENTS:
                return operand.name
    return ""


def _combinations(count: int) -> Iterator[tuple[str, ...]]:
    """All operands of one dtype, and all but one of them."""
    for dtype in _DTYPES:
        yield (dtype,) * count
    for k, common, other in product(range(count), _DTYPES, _DTYPES):
        if common != other and count > 1:
            yield (*(common,) * k, other, *(common,) * (count - k - 1))
