"""Builds a function that dispatches to one of several by the sizes of its arguments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols, in_scope
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.conditional import result_info
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    PrimValue,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import Op, infer

Decision: TypeAlias = "Split | int"
"""A decision tree; a leaf is the number of the function to call."""


@dataclass(frozen=True, slots=True)
class Split:
    """A decision by the size of `symbol`: a case up to each ascending bound, and one above all."""

    symbol: str
    branches: tuple[tuple[int | None, Decision], ...]


def dispatch(function: Function, decision: Decision, plans: Sequence[GlobalVar]) -> Function:
    """`function` with a body that only calls one of `plans`, which have its signature.

        def main(x: R.Tensor((s, 4))): ...
        -->
        def main(x: R.Tensor((s, 4))):
            if R.prim_less_equal(s, 64):
                gv = cls.main_s_0_64(x)
            else:
                gv = cls.main_s_65_up(x)
            return gv

    Small sizes are tested first: for them the time of the decision matters.
    """
    body = _Entry(function, plans).sequence(decision)
    known = set[str]().union(*(bare_symbols(p.struct_info) for p in function.params))
    ret = in_scope(function.ret_struct_info, known)
    return replace(function, body=body, ret_struct_info=ret)


def bounds_of(function: Function) -> dict[str, tuple[int, ...]]:
    """The sizes at which a function that `dispatch` has made takes another plan, by symbol.

    They are ascending, and each is the largest size of its plan.  Of other functions: none.
    """
    found: dict[str, set[int]] = {}
    waiting = [function.body]
    while waiting:
        match [binding for block in waiting.pop().blocks for binding in block.bindings]:
            case [
                VarBinding(value=Call(op=Op(name="prim_less_equal"), args=[size, most])),
                VarBinding(value=If(true_branch=small, false_branch=large)),
            ] if isinstance(size, PrimValue) and isinstance(most, PrimValue):
                found.setdefault(str(size.value), set()).add(int(str(most.value)))
                waiting += [small, large]
            case _:
                pass
    return {symbol: tuple(sorted(sizes)) for symbol, sizes in found.items()}


class _Entry:
    def __init__(self, function: Function, plans: Sequence[GlobalVar]) -> None:
        self._params = function.params
        self._plans = plans
        self._taken = {p.name for p in function.params}

    def sequence(self, decision: Decision) -> SeqExpr:
        match decision:
            case int(number):
                chosen = Call(self._plans[number], self._params)
                return self._returning(replace(chosen, struct_info=infer(chosen)))
            case Split(symbol=symbol, branches=branches):
                (most, small), *larger = branches
                if most is None:
                    return self.sequence(small)
                sizes = (PrimValue(dims.symbol(symbol)), PrimValue(most))
                cond = self._bound("small", call("prim_less_equal", *sizes))
                true, false = self.sequence(small), self.sequence(Split(symbol, tuple(larger)))
                return self._returning(If(cond.var, true, false, result_info(true, false)), cond)

    def _bound(self, name: str, value: Expr) -> VarBinding:
        return VarBinding(Var(unused(name, self._taken), value.struct_info), value)

    def _returning(self, value: Expr, *before: VarBinding) -> SeqExpr:
        result = self._bound("gv", value)
        return SeqExpr((BindingBlock((*before, result)),), result.var)
