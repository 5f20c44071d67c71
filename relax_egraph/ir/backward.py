"""Backward inference: struct info of operands from that of the result of their call.

The struct-info rule is applied to fresh symbols for unknown extents; its result is unified with the
known struct info of the result.  So no operator needs a second rule.  Where an operator may
broadcast, nothing is inferred.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import sympy

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bind, substituted
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.expr import Call
from relax_egraph.ir.op import OPS, Op, complete_attrs
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)

MAX_RANK = 6
"""The greatest rank that is tried for an operand of unknown rank."""


def joined(a: StructInfo, b: StructInfo) -> StructInfo:
    """The struct info of a value that fulfils both `a` and `b`; `a` where they contradict."""
    match a, b:
        case TensorStructInfo(), TensorStructInfo():
            dtype = a.dtype or b.dtype
            if a.shape is not None or (b.shape is None and b.ndim < 0):
                return replace(a, dtype=dtype)
            if a.ndim not in (-1, b.ndim):
                return replace(a, dtype=dtype)
            return TensorStructInfo(b.shape, dtype, b.ndim)
        case ShapeStructInfo(), ShapeStructInfo():
            return b if a.values is None and a.ndim in (-1, b.ndim) else a
        case _:
            return a


def learned(call: Call, result: StructInfo) -> tuple[StructInfo, ...]:
    """The struct info of the operands of `call`, with what follows from `result` and each other."""
    infos = [a.struct_info for a in call.args]
    if not isinstance(call.op, Op):
        return tuple(map(joined, infos, _of_function(call, infos)))
    if call.op.intrinsic or len(infos) != len(call.op.operands):
        return tuple(infos)
    for place, info in enumerate(infos):
        if isinstance(info, TensorStructInfo):
            infos[place] = _of_operand(call, infos, place, info, result)
    return tuple(infos)


def _of_function(call: Call, infos: Sequence[StructInfo]) -> tuple[StructInfo, ...]:
    """The struct info of arguments by the callee's signature, over the caller's dimensions."""
    assert not isinstance(call.op, Op)
    callee = call.op.struct_info
    if not isinstance(callee, FuncStructInfo) or len(callee.params or ()) != len(infos):
        return tuple(infos)
    params = callee.params or ()
    values = bind(params, infos)
    return tuple(substituted(p, values) for p in params)


def _of_operand(
    call: Call,
    infos: Sequence[StructInfo],
    place: int,
    info: TensorStructInfo,
    result: StructInfo,
) -> TensorStructInfo:
    if info.dtype is None:
        info = replace(info, dtype=_dtype(call, infos, place, info, result))
    if info.shape is None and isinstance(result, TensorStructInfo) and result.dims is not None:
        shape = _shape(call, infos, place, info, result.dims)
        if shape is not None:
            return tensor(shape, info.dtype)
    if info.shape is None and call.op in _OF_ONE_SHAPE:
        for other in infos:
            if isinstance(other, TensorStructInfo) and other.dims is not None:
                return tensor(other.dims, info.dtype)
    return info


_OF_ONE_SHAPE = (OPS["ewise_add"],)
"""Operators whose operands have one shape; their rules accept unknown shapes."""


def _dtype(
    call: Call,
    infos: Sequence[StructInfo],
    place: int,
    info: TensorStructInfo,
    result: StructInfo,
) -> str | None:
    """The only dtype of an operand with which the rule gives that of the result, else ``None``."""
    wanted = result.dtype if isinstance(result, TensorStructInfo) else None
    accepted: list[str] = []
    for dtype in DTYPES:
        answer = _ask(call, infos, place, replace(info, dtype=dtype))
        if answer is not None and (wanted is None or answer.dtype in (None, wanted)):
            accepted.append(dtype)
    return accepted[0] if len(accepted) == 1 else None


def _shape(
    call: Call,
    infos: Sequence[StructInfo],
    place: int,
    info: TensorStructInfo,
    wanted: tuple[Dim, ...],
) -> tuple[Dim, ...] | None:
    """The only shape of an operand with which the rule gives `wanted`; ``None`` if several may."""
    ranks = range(MAX_RANK + 1) if info.ndim < 0 else (info.ndim,)
    solutions: list[tuple[Dim, ...]] = []
    for rank in ranks:
        fresh = tuple(dims.symbol(f"_{k}") for k in range(rank))
        answer = _ask(call, infos, place, tensor(fresh, info.dtype))
        if answer is None or answer.ndim not in (-1, len(wanted)):
            continue
        if answer.dims is None:
            return None
        values = _solved(answer.dims, wanted)
        if any(s.name not in values for s in fresh):
            return None
        solution = tuple(values[s.name] for s in fresh)
        again = _ask(call, infos, place, tensor(solution, info.dtype))
        if again is not None and again.dims == wanted:
            solutions.append(solution)
    return solutions[0] if len(solutions) == 1 else None


def _solved(answer: Sequence[Dim], wanted: Sequence[Dim]) -> Mapping[str, Dim]:
    """The values of the fresh symbols that are whole extents of `answer`."""
    return {a.name: w for a, w in zip(answer, wanted, strict=True) if isinstance(a, sympy.Symbol)}


def _ask(
    call: Call, infos: Sequence[StructInfo], place: int, info: StructInfo
) -> TensorStructInfo | None:
    """The rule's result with `info` for operand `place`; ``None`` if it refuses."""
    assert isinstance(call.op, Op)
    operands = [info if k == place else other for k, other in enumerate(_known(call.op, infos))]
    try:
        answer = call.op.rule(*operands, **complete_attrs(call.op, call.attrs))
    except IllTyped:
        return None
    return answer if isinstance(answer, TensorStructInfo) else TensorStructInfo()


def _known(op: Op, infos: Sequence[StructInfo]) -> Iterator[StructInfo]:
    """The operands for a rule: an object in the place of a tensor is an unknown tensor."""
    for operand, info in zip(op.operands, infos, strict=True):
        if operand.kind == "tensor" and not isinstance(info, TensorStructInfo):
            yield TensorStructInfo()
        else:
            yield info
