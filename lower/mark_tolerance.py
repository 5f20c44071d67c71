"""Passes the tolerance of functions on to the loop functions that they call."""

from dataclasses import replace

from relax_egraph.ir.expr import Expr, GlobalVar
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.tolerance import ATTRIBUTE, tolerance_of
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir.stmt import PrimFunc


@module_pass(name="mark_tolerance")
def mark_tolerance(module: IRModule) -> IRModule:
    """Give loop functions without a schedule the attribute ``tolerance``.

        def main(x): R.func_attr({"tolerance": 0.02}); R.call_tir(cls.conv2d, (x, w), …)
        -->
        def conv2d(…): T.func_attr({"tolerance": 0.02})

    It is the minimum of the callers' tolerances, which are 0 by default.  A tolerance of the loop
    function itself has precedence.  Raises `IllFormed` for a tolerance that is not a nonnegative
    number.
    """
    least: dict[str, float] = {}
    for name, function in module.relax_functions():
        allowed = tolerance_of(name, function.attrs)

        def visit(expr: Expr, allowed: float = allowed) -> None:
            if isinstance(expr, GlobalVar):
                least[expr.name] = min(allowed, least.get(expr.name, allowed))

        post_order_visit(function, visit)

    def marked(name: str, function: BaseFunc) -> BaseFunc:
        if not isinstance(function, PrimFunc) or "schedule" in function.attrs:
            return function
        own = ATTRIBUTE in function.attrs
        tolerance = tolerance_of(name, function.attrs) if own else least.get(name, 0.0)
        if not own and not tolerance:
            return function
        return replace(function, attrs={**function.attrs, ATTRIBUTE: tolerance})

    return IRModule({name: marked(name, f) for name, f in module.functions.items()})
