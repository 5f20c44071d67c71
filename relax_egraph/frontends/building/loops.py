"""Loops as two functions that call each other last: the test, and one turn.

loop(params…) = step(params…) if test(params…) else the carried ones of params
step(params…) = loop(turn(params…)…)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.frontends.building.functions import call_function, define
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols, in_scope
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    BindingBlock,
    Expr,
    GlobalVar,
    If,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from relax_egraph.ir.struct_info import FuncStructInfo, TupleStructInfo


@dataclass(frozen=True, slots=True)
class TailLoop:
    """A loop: its two function `names`, distinct `params`, and which of them it returns.

    `test` and `turn` emit the condition and the operands of the next turn.  `varying` are
    symbols of extents that change from turn to turn.
    """

    names: tuple[str, str]
    params: Sequence[Var]
    carried: slice
    test: Callable[[], Expr]
    turn: Callable[[], Sequence[Expr]]
    varying: frozenset[Dim] = frozenset()


def define_loop(bb: BlockBuilder, loop: TailLoop) -> GlobalVar:
    """Define the functions of `loop`; returns the one to call, whose result is a tuple."""
    params, carried = loop.params, loop.params[loop.carried]
    bound = set[str]().union(*(bare_symbols(p.struct_info) for p in params))
    bound -= set(map(dims.text, loop.varying))
    result = TupleStructInfo(tuple(in_scope(p.struct_info, bound) for p in carried))
    signature = FuncStructInfo(tuple(p.struct_info for p in params), result)
    looping = GlobalVar(loop.names[0], signature)

    def turned() -> Expr:
        return bb.emit(call_function(looping, loop.turn()))

    step = define(bb, loop.names[1], params, turned)

    def tested() -> Expr:
        condition = loop.test()
        stepped, kept = Var("stepped", result), Var("kept", result)
        called = VarBinding(stepped, call_function(step, params))
        true = SeqExpr((BindingBlock((called,)),), stepped)
        whole = VarBinding(kept, Tuple(tuple(carried)))
        false = SeqExpr((BindingBlock((whole,)),), kept)
        return bb.emit(If(condition, true, false, result))

    define(bb, loop.names[0], params, tested)
    return looping
