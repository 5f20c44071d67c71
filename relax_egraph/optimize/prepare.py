"""A module as it is planned, and the rules that its blocks are saturated with."""

from collections.abc import Sequence

from relax_egraph.egraph.engine import RuleBook
from relax_egraph.egraph.readback.decode import BROADCAST
from relax_egraph.ir.assumptions import Assumptions
from relax_egraph.ir.expr import Call, Expr, Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.tolerance import tolerance_of, with_tolerance
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.passes import (
    Sequential,
    channels_last,
    eliminate_common_subexpr,
    fold_isnan,
    fold_shapes,
    remove_all_unused,
)
from relax_egraph.passes.check_claims import check_claims_assuming
from relax_egraph.rules import Rules

PREPARE = Sequential(
    (fold_shapes, fold_isnan, eliminate_common_subexpr, remove_all_unused, channels_last),
    name="prepare",
)
"""Fold computed shapes and tests for NaN, compute common values once, put channels last.

Declared struct info that is not proven is checked before.
"""


def prepare(
    module: IRModule, tolerance: float | None = None, assumed: Assumptions | None = None
) -> IRModule:
    """The module that is planned: `module`, simplified, with `tolerance` on its functions.

    Declared struct info that does not follow from what is `assumed` is checked at run time.
    Raises `IllTyped` for an operator whose operands do not fit together where the assumptions hold.
    """
    checked = check_claims_assuming(assumed or Assumptions())(module)
    return _with_tolerance(PREPARE(checked), tolerance)


def book_for(
    prepared: IRModule, rules: Rules, without: Sequence[str] = (), fast_math: bool = False
) -> RuleBook:
    """The rules that blocks of a `prepared` module are saturated with."""
    every = RuleBook.default([rules], without, fast_math, bounded=has_tolerance(prepared))
    return every.for_operators(operators_in(prepared))


def has_tolerance(prepared: IRModule) -> bool:
    """Whether a function of the module may lose precision."""
    return any(tolerance_of(name, f.attrs) for name, f in prepared.relax_functions())


def operators_in(module: IRModule) -> frozenset[str]:
    """The operators that functions of `module` call, and the one that encoding adds."""
    names = {BROADCAST}

    def visit(expr: Expr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            names.add(expr.op.name)

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    return frozenset(names)


def _with_tolerance(module: IRModule, tolerance: float | None) -> IRModule:
    """`module` with `tolerance` on each function that is planned, if there is one."""
    if tolerance is None:
        return module

    def changed(function: BaseFunc) -> BaseFunc:
        if isinstance(function, Function) and not function.attrs.get("primitive"):
            return with_tolerance(function, tolerance)
        return function

    return IRModule({name: changed(f) for name, f in module.functions.items()})
