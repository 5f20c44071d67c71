"""Traversals: visitors that ask, mutators that rebuild, what each does where nothing is said."""

import numpy as np
import pytest

from relax_egraph import IRModule, parse
from relax_egraph.ir.block_builder import call as apply
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Expr,
    Function,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
)
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.visitor import ExprVisitor
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import canonicalize_bindings, normalize
from tests.seeds.programs import floats

INFO = tensor((2, 3), "float32")
X = Var("x", INFO)
COND = Var("c", tensor((), "bool"))


def leaf(value: Expr) -> SeqExpr:
    """A branch that only gives `value`."""
    return SeqExpr((), value)


# --- ExprVisitor ----------------------------------------------------------------------------


class PrintVisitor(ExprVisitor):
    """The listing: every visit says so first, whichever kind of expression it is."""

    def visit_expr(self, expr: Expr) -> None:
        print("Here")
        super().visit_expr(expr)


def test_one_method_sees_every_expression_and_the_rest_is_dispatched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    expr = apply("add", apply("exp", X), const(1.0))

    PrintVisitor().visit_expr(expr)

    assert capsys.readouterr().out == "Here\n" * 4


def test_a_visitor_goes_into_the_condition_and_then_both_branches() -> None:
    """``ExprVisitor::VisitExpr_(IfNode)``, which is the default here as well."""
    seen: list[Expr] = []

    class Log(ExprVisitor):
        def visit_var(self, var: Var) -> None:
            seen.append(var)

    y, z = Var("y", INFO), Var("z", INFO)

    Log().visit_expr(If(COND, leaf(y), leaf(z), INFO))

    assert seen == [COND, y, z]


class CallChecker(ExprVisitor):
    """The listing: whether an expression has a call; the operands of one do not matter."""

    def __init__(self) -> None:
        self.result = False

    def visit_call(self, call: Call) -> None:
        self.result = True

    def check(self, expr: Expr) -> bool:
        self.result = False
        self.visit_expr(expr)
        return self.result


ONE = const(1.0)

CHECKED: dict[str, tuple[Expr, bool]] = {
    "a variable": (X, False),
    "a constant": (ONE, False),
    "a tuple of leaves": (Tuple((X, ONE)), False),
    "a field of a tuple": (TupleGetItem(Tuple((X, ONE)), 1), False),
    "a conditional of leaves": (If(COND, leaf(X), leaf(X), INFO), False),
    "a call": (apply("exp", X), True),
    "a call in a tuple": (Tuple((X, apply("exp", X))), True),
    "a call in a branch": (If(COND, leaf(X), leaf(apply("exp", X)), INFO), True),
    "a call of a variable": (Call(Var("f"), (X,)), True),
}


@pytest.mark.parametrize("case", CHECKED)
def test_call_checker_finds_a_call_wherever_it_is(case: str) -> None:
    expr, has_call = CHECKED[case]

    assert CallChecker().check(expr) is has_call


def test_call_checker_can_be_used_again() -> None:
    checker = CallChecker()

    assert [checker.check(e) for e in (apply("exp", X), X, apply("exp", X))] == [True, False, True]


def test_call_checker_stops_at_the_first_call() -> None:
    """Nothing of a call is visited: a chain of any length takes no time and no stack."""
    chain: Expr = X
    for _ in range(10_000):
        chain = Call(OPS["exp"], (chain,))

    assert CallChecker().check(chain) is True


# --- ExprMutator ----------------------------------------------------------------------------


def test_a_field_access_is_a_new_one_only_if_its_tuple_is_new() -> None:
    """``ExprMutator::VisitExpr_(TupleGetItemNode)``: functional update."""
    pair = Tuple((X, ONE))
    unchanged, changed = TupleGetItem(pair, 1), TupleGetItem(Tuple((COND, X)), 1)
    y = Var("y", INFO)

    class Renamed(ExprMutator):
        def visit_var(self, var: Var) -> Expr:
            return y if var is COND else var

    new = Renamed().visit_expr(changed)

    assert Renamed().visit_expr(unchanged) is unchanged
    assert isinstance(new, TupleGetItem)
    assert isinstance(new.tuple_value, Tuple)
    assert new.tuple_value.fields == (y, X)
    assert new.index == 1
    assert isinstance(changed.tuple_value, Tuple)
    assert changed.tuple_value.fields == (COND, X)


def kinds() -> list[Expr]:
    """An expression of each kind that has expressions in it, each sequence in normal form."""
    z = Var("z", INFO)
    block = BindingBlock((VarBinding(z, apply("exp", X)),))
    return [
        Tuple((X, apply("exp", X))),
        TupleGetItem(Tuple((X, X)), 0),
        apply("add", X, apply("exp", X)),
        If(COND, leaf(X), SeqExpr((block,), z), INFO),
        SeqExpr((block,), z),
        Function((X,), SeqExpr((block,), z), INFO),
    ]


@pytest.mark.parametrize("expr", kinds(), ids=lambda e: type(e).__name__)
def test_an_unchanged_tree_is_the_same_object(expr: Expr) -> None:
    assert ExprMutator().visit_expr(expr) is expr


class MemoizedMutator(ExprMutator):
    """``memo_``: what was visited once is not visited again, but looked up.

    Corrected: here it belongs to who wants it.  Values are bound to variables, so that what is used
    twice stands once; and a result that is looked up in one branch may be bound in the other.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memo: dict[Expr, Expr] = {}
        self.visits = 0

    def visit_expr(self, expr: Expr) -> Expr:
        if expr not in self.memo:
            self.visits += 1
            self.memo[expr] = super().visit_expr(expr)
        return self.memo[expr]


def test_a_memo_makes_the_visit_of_a_shared_node_one() -> None:
    shared: Expr = X
    for _ in range(60):
        shared = apply("add", shared, shared)
    mutator = MemoizedMutator()

    result = mutator.visit_expr(shared)

    assert result is shared
    assert mutator.visits == 61


def test_a_memo_keeps_what_is_shared_shared() -> None:
    class ToZero(MemoizedMutator):
        def visit_var(self, var: Var) -> Expr:
            return Var("y", INFO)

    inner = apply("exp", X)

    changed = ToZero().visit_expr(apply("add", inner, inner))

    assert isinstance(changed, Call)
    assert changed.args[0] is changed.args[1]
    assert changed.args[0] is not inner


def test_a_bound_value_is_visited_once_without_a_memo() -> None:
    seen: list[str] = []

    class Log(ExprMutator):
        def visit_call(self, call: Call) -> Expr:
            seen.append(str(call.op))
            return super().visit_call(call)

    module = parse("""
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    a = R.exp(x)
    b = R.add(a, a)
    d = R.add(b, b)
    return d
""")

    Log().visit_expr(main_of(module))

    assert seen == ["R.exp", "R.add", "R.add"]


# --- IfCollapser ----------------------------------------------------------------------------


class IfCollapser(ExprMutator):
    """The listing: a conditional becomes its true branch, which need not be a conditional."""

    def visit_if(self, branch: If) -> Expr:
        return self.visit_expr(branch.true_branch)

    def collapse_ifs(self, expr: Expr) -> Expr:
        return self.visit_expr(expr)


def main_of(module: IRModule) -> Function:
    function = module["main"]
    assert isinstance(function, Function)
    return function


def test_a_conditional_becomes_its_true_branch() -> None:
    true, false = leaf(X), leaf(apply("exp", X))

    assert IfCollapser().collapse_ifs(If(COND, true, false, INFO)) is true


BRANCHES = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
    a = R.exp(x)
    if c:
        b = R.add(a, x)
        if c:
            d = R.negative(b)
        else:
            d = b
        e = R.add(d, d)
    else:
        e = R.subtract(a, x)
    f = R.add(e, a)
    return f
"""

STRAIGHT = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
    a = R.exp(x)
    b = R.add(a, x)
    d = R.negative(b)
    e = R.add(d, d)
    f = R.add(e, a)
    return f
"""


def test_a_collapsed_function_is_straight_once_it_is_normal() -> None:
    function = IfCollapser().collapse_ifs(main_of(parse(BRANCHES)))
    assert isinstance(function, Function)

    after = normalize(IRModule({"main": function}))

    assert_well_formed(after)
    assert_structural_equal(canonicalize_bindings(after), parse(STRAIGHT))
    x = floats(2, 3)
    true = np.bool_(True)
    result = evaluate(after, "main", x, true)
    np.testing.assert_array_equal(result, evaluate(parse(BRANCHES), "main", x, true))


def test_a_function_without_conditionals_stays_the_same_object() -> None:
    function = main_of(parse(STRAIGHT))

    assert IfCollapser().collapse_ifs(function) is function
