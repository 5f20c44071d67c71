"""Checks at run time the assumptions on symbols under which a module was optimized.

What a function checks first of the sizes of its parameters is assumed behind that, as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols
from relax_egraph.ir.assumptions import Assumptions, Range, parse
from relax_egraph.ir.braces import braced
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


@dataclass(frozen=True, slots=True)
class Check:
    """A check that the dimensions `value` and `expected`, over `symbol`, are equal."""

    symbol: str
    value: Dim
    expected: Dim
    refusal: str

    def cast(self, name: str) -> MatchCast:
        """The check as the binding of `name`."""
        info = ShapeStructInfo((self.expected,), 1)
        return MatchCast(Var(name, info), ShapeExpr((self.value,)), info, refusal=self.refusal)


def range_checks(symbol: str, r: Range) -> Iterator[Check]:
    """The checks that succeed exactly if `symbol` is in the range `r`."""
    n, rest = dims.symbol(symbol), r.least % r.step
    if r.most == r.least:
        yield Check(symbol, n, r.least, _refusal(symbol, str(r.least)))
        return
    if r.step > 1:
        needed = _refusal(symbol, f"{symbol} % {r.step} == {rest}")
        yield Check(symbol, dims.mod(n, r.step), rest, needed)
    if r.least > rest:
        needed = _refusal(symbol, f"{r.least} or more")
        yield Check(symbol, dims.minimum(n, r.least), r.least, needed)
    if r.most is not None:
        needed = _refusal(symbol, f"{r.most} or less")
        yield Check(symbol, dims.maximum(n, r.most), r.most, needed)


def _refusal(symbol: str, needed: str) -> str:
    return f"the dimension {symbol} is {{{symbol}}}, needs {needed}"


def assumed_behind(function: Function, assumptions: Assumptions) -> Assumptions:
    """What holds of the symbols of `function` behind its first checks.

    These are the `assumptions`, and bounds that it checks itself, with a refusal, before anything
    else.  Raises `AssumptionError` if they contradict each other.
    """
    known = bound_symbols(function)
    own = tuple(_bounds_at_entry(function, known))
    return (parse((*assumptions.texts, *own)) if own else assumptions).about(known)


def _bounds_at_entry(function: Function, symbols: set[str]) -> Iterator[str]:
    for cast in _first_checks(function):
        match cast:
            case MatchCast(
                value=ShapeExpr(values=(value,)),
                struct_info=ShapeStructInfo(values=(int() as bound,)),
            ) if cast.refusal:
                for name in dims.symbols(value) & symbols:
                    n = dims.symbol(name)
                    if value == dims.minimum(n, bound):
                        yield f"{name} >= {bound}"
                    elif value == dims.maximum(n, bound):
                        yield f"{name} <= {bound}"
            case _:
                pass


def _first_checks(function: Function) -> Iterator[MatchCast]:
    """The checks of dimensions before all other bindings of `function`."""
    for binding in bindings_of(function.body):
        if not isinstance(binding, MatchCast) or not isinstance(binding.value, ShapeExpr):
            return
        yield binding


def check_assumptions(assumptions: Assumptions) -> Pass:
    """Begin each function with an ``R.match_cast`` for each assumption on its symbols.

        def main(x: R.Tensor((n, s))): ...                     # n <= 512, s % 8 == 0
        -->
        def main(x: R.Tensor((n, s))):
            assumed_n = R.match_cast(R.shape([max(512, n)]), R.Shape((512,)))
            assumed_s = R.match_cast(R.shape([s % 8]), R.Shape((0,)))
            ...

    The cast succeeds exactly if the assumption holds, and says so if it does not.  It is built
    outside of `assuming`, under which it would be proven.

    After the checks, a symbol that equals another dimension is replaced by it: with ``n == m``,
    parameters ``(n, 4)`` are cast to ``(m, 4)``, and the body uses ``m``.  Later passes need no
    knowledge of assumptions.
    """

    @function_pass(name="check_assumptions")
    def checked(function: Function, _: IRModule) -> Function:
        if function.attrs.get("primitive"):
            return function
        about = assumptions.about(bound_symbols(function))
        known = list(_checks(about))
        if not known:
            return function
        names = {p.name for p in function.params} | {b.var.name for b in bindings_of(function.body)}
        casts = [check.cast(unused(f"assumed_{check.symbol}", names)) for check in known]
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


def _checks(assumptions: Assumptions) -> Iterator[Check]:
    """The checks that succeed exactly if the assumptions hold."""
    for name, r in assumptions.ranges:
        yield from range_checks(name, r)
    for name, value in assumptions.values:
        wanted = dims.canonical(value)
        with braced():
            written = dims.text(wanted)
        needed = f"{dims.text(wanted)}, which is {written}"
        yield Check(name, dims.symbol(name), wanted, _refusal(name, needed))
