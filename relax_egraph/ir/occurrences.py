"""Occurrences in the struct info of an expression: dimension symbols, variables of shapes."""

from collections.abc import Iterator

from relax_egraph.ir.expr import (
    Call,
    Expr,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Var,
)
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
)
from relax_egraph.ir.templates import extents_of
from relax_egraph.ir.walk import bindings_of, children


def symbols_in(expr: Expr) -> frozenset[str]:
    """The dimension symbols that occur in `expr`; in a function also those of its signature."""
    return frozenset[str]().union(*map(symbols_of, set(_infos(expr))))


def symbols_of_cast(cast: MatchCast) -> frozenset[str]:
    """The dimension symbols that a check compares, binds, or has in its message."""
    spoken_of = ShapeStructInfo(extents_of(cast.refusal))
    return symbols_of(cast.struct_info) | symbols_of(spoken_of)


def shape_variables_in(expr: Expr) -> frozenset[Var]:
    """The variables that struct info inside of `expr` names as the shape of a tensor."""
    return frozenset[Var]().union(*map(shape_variables_of, set(_infos(expr))))


def shape_variables_of(info: StructInfo) -> frozenset[Var]:
    """The variables that `info` names as the shape of a tensor."""
    match info:
        case TensorStructInfo(shape=Var() as shape):
            return frozenset({shape})
        case TupleStructInfo(fields=fields):
            return frozenset[Var]().union(*map(shape_variables_of, fields))
        case FuncStructInfo(params=params, ret=ret):
            return frozenset[Var]().union(*map(shape_variables_of, (*(params or ()), ret)))
        case _:
            return frozenset()


def _infos(expr: Expr) -> Iterator[StructInfo]:
    match expr:
        case Function(params=params, ret_struct_info=ret):
            yield from (p.struct_info for p in params)
            yield ret
        case SeqExpr():
            for binding in bindings_of(expr):
                yield binding.var.struct_info
                if isinstance(binding, MatchCast):
                    yield binding.struct_info
                    yield ShapeStructInfo(extents_of(binding.refusal))
        case Call(sinfo_args=claims, struct_info=info):
            yield from claims
            yield info
        case If() | ShapeExpr() | PrimValue() | Var():
            yield expr.struct_info
        case _:
            pass
    for child in children(expr):
        yield from _infos(child)
