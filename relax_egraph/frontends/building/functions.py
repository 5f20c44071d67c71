"""Private functions of the module that a front door builds, and their calls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from relax_egraph.ir.agreement import bare_symbols, free_symbols
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.conditional import result_info
from relax_egraph.ir.expr import (
    Attr,
    BindingBlock,
    Call,
    Expr,
    GlobalVar,
    If,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import infer
from relax_egraph.ir.struct_info import StructInfo

PRIVATE: Mapping[str, Attr] = {"private": True}
"""The attributes of private functions."""


def define(
    bb: BlockBuilder, name: str, params: Sequence[Var], body: Callable[[], Expr]
) -> GlobalVar:
    """Define a private function with the unique `name`, whose body and result `body` emits."""
    with bb.function(name, params, PRIVATE):
        bb.emit_func_output(body())
    return GlobalVar(name, bb.get()[name].struct_info)


def call_function(function: GlobalVar, operands: Sequence[Expr]) -> Call:
    """A call of a function of the module."""
    unresolved = Call(function, tuple(operands))
    return replace(unresolved, struct_info=infer(unresolved))


def either(condition: Expr, then: Call, other: Call) -> If:
    """One of two calls."""
    true, false = _branch(then), _branch(other)
    return If(condition, true, false, result_info(true, false))


def _branch(called: Call) -> SeqExpr:
    var = Var("chosen", called.struct_info)
    return SeqExpr((BindingBlock((VarBinding(var, called),)),), var)


def distinct(variables: Sequence[Var]) -> list[Var]:
    """`variables`, renamed so that their names are distinct."""
    names = set[str]()
    return [replace(v, name=unused(v.name, names)) for v in variables]


def untold(used: Iterable[str], infos: Iterable[StructInfo]) -> set[str]:
    """The symbols `used` or in `infos` that no parameter of `infos` binds."""
    needed, bound = set(used), set[str]()
    for info in infos:
        needed |= free_symbols(info)
        bound |= bare_symbols(info)
    return needed - bound
