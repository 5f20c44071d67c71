"""What an operator's struct-info rule says of it, found by asking the rule.

The rule is applied to small operands of every dtype; what all answers have in common is a
property of the operator.  So a new operator has its vocabulary and its dtype facts at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import REQUIRED, Op
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, tensor

_DTYPES = ("float32", "float64", "int64", "bool")
_SAMPLES: dict[str, Any] = {"int": 0, "ints": (0,), "float": 1.0, "bool": False, "str": "float32"}
"""A value of each kind of attribute that rules can say."""

_MAX_RANK = 4


@dataclass(frozen=True, slots=True)
class Traits:
    """An operator of tensors and shapes that makes one tensor.

    `in_kernel`: it is fusible, and the result's shape follows from the operands' shapes, so it
    can be computed within a kernel.  `dtype` is the name of the operand or attribute whose dtype
    the result has, or a dtype in quotes; empty if neither is so.
    """

    op: Op
    in_kernel: bool
    dtype: str


def traits_of(op: Op) -> Traits | None:
    """The traits of `op`; ``None`` of one that rules cannot see."""
    if op.intrinsic or any(o.optional or o.kind not in ("tensor", "shape") for o in op.operands):
        return None
    if any(a.kind not in _SAMPLES for a in op.attrs):
        return None
    ranks = next((r for r in _ranks(op) if _ask(op, r, [None] * len(op.operands))), None)
    unknown = _ask(op, ranks, [None] * len(op.operands))
    if not isinstance(unknown, TensorStructInfo):
        return None
    known = op.fusible and ranks is not None and unknown.dims is not None
    return Traits(op, in_kernel=known, dtype=_dtype(op, ranks))


def _ranks(op: Op) -> Iterator[tuple[int, ...]]:
    """Ranks to try the operands at: one for all of them first."""
    count = len(op.operands)
    yield from ((rank,) * count for rank in (2, 3, 4, 1, 0))
    yield from product(range(_MAX_RANK + 1), repeat=count)


def _ask(op: Op, ranks: tuple[int, ...] | None, dtypes: list[str | None]) -> StructInfo | None:
    """The struct info of `op` on operands whose extents are all 1; ``None`` if it refuses them."""
    infos: list[StructInfo] = []
    for k, (operand, dtype) in enumerate(zip(op.operands, dtypes, strict=True)):
        shape = None if ranks is None else (1,) * ranks[k]
        rank = -1 if ranks is None else ranks[k]
        infos.append(
            tensor(shape, dtype) if operand.kind == "tensor" else ShapeStructInfo(shape, rank)
        )
    try:
        return op.rule(*infos, **_attrs(op))
    except IllTyped:
        return None


def _attrs(op: Op) -> dict[str, Any]:
    return {a.name: _SAMPLES[a.kind] if a.default is REQUIRED else a.default for a in op.attrs}


def _dtype(op: Op, ranks: tuple[int, ...] | None) -> str:
    """Where the result's dtype comes from."""
    answers: list[tuple[tuple[str, ...], str | None]] = []
    for dtypes in _combinations(len(op.operands)):
        info = _ask(op, ranks, list(dtypes))
        if isinstance(info, TensorStructInfo):
            answers.append((dtypes, info.dtype))
    if not answers:
        return ""
    results = {result for _, result in answers}
    named = {a.name for a in op.attrs if a.name == "dtype" and a.kind == "str"}
    if named and results == {_attrs(op)["dtype"]}:
        return "dtype"
    for k, operand in reversed(list(enumerate(op.operands))):
        if operand.kind == "tensor" and all(result == d[k] for d, result in answers):
            return operand.name
    only = results.pop()
    return f'"{only}"' if not results and only is not None else ""


def _combinations(count: int) -> Iterator[tuple[str, ...]]:
    """All operands of one dtype, and all but one of them."""
    for dtype in _DTYPES:
        yield (dtype,) * count
    for k, common, other in product(range(count), _DTYPES, _DTYPES):
        if common != other and count > 1:
            yield (*(common,) * k, other, *(common,) * (count - k - 1))
