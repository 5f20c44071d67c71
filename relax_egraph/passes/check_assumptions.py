"""Checks at run time the assumptions on symbols under which a module was optimized."""

from collections.abc import Iterator
from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols
from relax_egraph.ir.assumptions import Assumptions
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import BindingBlock, Expr, Function, MatchCast, ShapeExpr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.names import unused
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import bindings_of
from relax_egraph.passes.infra import Pass, function_pass


def bound_symbols(function: Function) -> set[str]:
    """The symbols that the parameters of `function` bind."""
    return set[str]().union(*(bare_symbols(p.struct_info) for p in function.params))


def check_assumptions(assumptions: Assumptions) -> Pass:
    """Begin each function with an ``R.match_cast`` for each assumption on its symbols.

        def main(x: R.Tensor((n, s))): ...                     # n <= 512, s % 8 == 0
        -->
        def main(x: R.Tensor((n, s))):
            assumed_n = R.match_cast(R.shape([max(512, n)]), R.Shape((512,)))
            assumed_s = R.match_cast(R.shape([s % 8]), R.Shape((0,)))
            ...

    The cast succeeds exactly if the assumption holds.  It is built outside of `assuming`, under
    which it would be proven and dropped.

    After the checks, a symbol that equals another dimension is replaced by it: with ``n == m``,
    parameters ``(n, 4)`` are cast to ``(m, 4)``, and the body uses ``m``.  Later passes need no
    knowledge of assumptions.
    """

    @function_pass(name="check_assumptions")
    def checked(function: Function, _: IRModule) -> Function:
        if function.attrs.get("primitive"):
            return function
        about = assumptions.about(bound_symbols(function))
        known = list(_conditions(about))
        if not known:
            return function
        names = {p.name for p in function.params} | {b.var.name for b in bindings_of(function.body)}
        casts: list[MatchCast] = []
        for name, value, expected in known:
            info = ShapeStructInfo((expected,), 1)
            cast = MatchCast(Var(unused(f"assumed_{name}", names), info), ShapeExpr((value,)), info)
            casts.append(cast)
        values = _values(about)
        over = Substitution(values)
        specialized = {p: over.info(p.struct_info) for p in function.params}
        renamed: dict[Var, Expr] = {}
        for param, info in specialized.items():
            if info != param.struct_info:
                renamed[param] = var = Var(unused(param.name, names), info)
                casts.append(MatchCast(var, param, info))
        body = Substitution(values, renamed).sequence(function.body)
        blocks = (BindingBlock(tuple(casts)), *body.blocks)
        return replace(function, body=replace(body, blocks=blocks))

    return checked


def _values(assumptions: Assumptions) -> dict[str, Dim]:
    """The symbols that equal other dimensions, and those dimensions."""
    numbers: dict[str, Dim] = {n: r.least for n, r in assumptions.ranges if r.most == r.least}
    over = {n: dims.substitute(dims.canonical(v), numbers) for n, v in assumptions.values}
    return numbers | over


def _conditions(assumptions: Assumptions) -> Iterator[tuple[str, Dim, Dim]]:
    """A symbol, and two dimensions that are equal exactly if the assumption on it holds."""
    for name, r in assumptions.ranges:
        n, rest = dims.symbol(name), r.least % r.step
        if r.most == r.least:
            yield name, n, r.least
            continue
        if r.step > 1:
            yield name, dims.mod(n, r.step), rest
        if r.least > rest:
            yield name, dims.minimum(n, r.least), r.least
        if r.most is not None:
            yield name, dims.maximum(n, r.most), r.most
    for name, value in assumptions.values:
        yield name, dims.symbol(name), dims.canonical(value)
