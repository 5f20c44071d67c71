"""The dimension symbols that a printed function declares, in order."""

from collections.abc import Iterator

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, Expr, Function, MatchCast, PrimValue, SeqExpr, ShapeExpr
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.walk import children


def symbols_in(function: Function) -> dict[str, None]:
    """The symbols of `function`, in order of appearance; those of one dimension sorted."""
    symbols: dict[str, None] = {}
    seen: set[StructInfo] = set()
    for info in _infos(function):
        if info not in seen:
            seen.add(info)
            for dim in _dims(info):
                symbols.update(dict.fromkeys(sorted(dims.symbols(dim))))
    return symbols


def _dims(info: StructInfo) -> Iterator[Dim]:
    match info:
        case TensorStructInfo():
            yield from info.dims or ()
        case ShapeStructInfo(values=values):
            yield from values or ()
        case PrimStructInfo(value=value):
            yield from () if value is None else (value,)
        case TupleStructInfo(fields=fields):
            for part in fields:
                yield from _dims(part)
        case FuncStructInfo(params=params, ret=ret):
            for part in (*(params or ()), ret):
                yield from _dims(part)
        case ObjectStructInfo():
            pass


def _infos(expr: Expr) -> Iterator[StructInfo]:
    """The struct info that the printed form of `expr` has."""
    match expr:
        case Function(params=params, ret_struct_info=ret, body=body):
            yield from (p.struct_info for p in params)
            yield ret
            yield from _infos(body)
        case SeqExpr(blocks=blocks, body=body):
            for block in blocks:
                for binding in block.bindings:
                    yield binding.var.struct_info
                    if isinstance(binding, MatchCast):
                        yield binding.struct_info
                    yield from _infos(binding.value)
            yield from _infos(body)
        case ShapeExpr() | PrimValue():
            yield expr.struct_info
        case _:
            if isinstance(expr, Call):
                yield from expr.sinfo_args
            for child in children(expr):
                yield from _infos(child)
