"""Constant folding written as a visitor and a mutator."""

import numpy as np
import pytest

from relax_egraph import IRModule, parse
from relax_egraph.ir.block_builder import call as apply
from relax_egraph.ir.block_builder import call_packed
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    const,
)
from relax_egraph.ir.struct_info import ObjectStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.walk import free_vars
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import fold_constant, normalize
from tests.seeds.constant_folder import ConstantChecker, fold, fold_constant_pass
from tests.seeds.programs import floats

INFO = tensor((2, 3), "float32")
X = Var("x", INFO)
ONE, TWO = const(1.0), const(2.0)


# --- ConstantChecker ------------------------------------------------------------------------

CHECKED: dict[str, tuple[Expr, bool]] = {
    "a constant": (ONE, True),
    "a tuple of constants": (Tuple((ONE, TWO)), True),
    "a tuple of tuples of constants": (Tuple((Tuple((ONE,)), TWO)), True),
    "an empty tuple": (Tuple(()), True),
    "a variable": (X, False),
    "a tuple with a variable": (Tuple((ONE, X)), False),
    "a tuple with one further inside": (Tuple((ONE, Tuple((TWO, X)))), False),
    "a call of constants": (apply("add", ONE, TWO), False),
    "a field of a tuple of constants": (TupleGetItem(Tuple((ONE,)), 0), False),
    "a shape": (ShapeExpr((2, 3)), False),
}


@pytest.mark.parametrize("case", CHECKED)
def test_what_is_constant(case: str) -> None:
    expr, is_constant = CHECKED[case]

    assert ConstantChecker().check(expr) is is_constant


def test_the_memo_is_written_only_for_what_may_be_constant() -> None:
    checker = ConstantChecker()
    pair = Tuple((ONE, X))

    assert checker.check(pair) is False
    assert checker.memo == {ONE: True, pair: False}


def test_what_is_in_the_memo_is_not_visited_again() -> None:
    shared: Expr = ONE
    for _ in range(60):
        shared = Tuple((shared, shared))
    visits: list[Tuple] = []

    class Counting(ConstantChecker):
        def visit_tuple(self, value: Tuple) -> None:
            visits.append(value)
            super().visit_tuple(value)

    checker = Counting()

    assert [checker.check(shared), checker.check(shared)] == [True, True]
    assert len(visits) == 60


# --- ConstantFolder -------------------------------------------------------------------------


def test_a_call_of_constants_becomes_its_value() -> None:
    folded = fold(apply("add", ONE, TWO))

    assert isinstance(folded, Constant)
    np.testing.assert_array_equal(folded.data, np.float32(3), strict=True)


def test_calls_are_folded_from_the_inside_out() -> None:
    folded = fold(apply("add", apply("exp", const(0.0)), apply("multiply", TWO, TWO)))

    assert isinstance(folded, Constant)
    np.testing.assert_array_equal(folded.data, np.float32(5), strict=True)


def test_a_call_with_a_variable_stays_and_its_operands_are_folded() -> None:
    folded = fold(apply("add", X, apply("add", ONE, TWO)))

    assert isinstance(folded, Call)
    variable, constant = folded.args
    assert variable is X
    assert isinstance(constant, Constant)
    assert constant.data == 3


def test_a_tuple_of_constants_is_an_operand_and_a_tuple_a_result() -> None:
    row = const([1.0, 2.0], "float32")

    joined = fold(apply("concat", Tuple((row, row)), axis=0))
    parts = fold(apply("split", row, indices_or_sections=2))

    assert isinstance(joined, Constant)
    np.testing.assert_array_equal(joined.data, np.array([1, 2, 1, 2], np.float32), strict=True)
    assert isinstance(parts, Tuple)
    assert [f.data.tolist() for f in parts.fields if isinstance(f, Constant)] == [[1.0], [2.0]]


def test_a_field_of_a_tuple_is_taken_whatever_the_others_are() -> None:
    pair = Tuple((X, ONE))

    assert fold(TupleGetItem(pair, 0)) is X
    assert fold(TupleGetItem(pair, 1)) is ONE


def test_a_field_of_what_becomes_a_tuple_is_taken() -> None:
    """The operand may be evaluated to a tuple, whether it is one or not."""
    row = const([1.0, 2.0], "float32")

    folded = fold(TupleGetItem(apply("split", row, indices_or_sections=2), 1))

    assert isinstance(folded, Constant)
    assert folded.data.tolist() == [2.0]


UNFOLDED: dict[str, Call] = {
    "no operands": Call(Var("f"), ()),
    # Corrected: in the document it is ones(shape=(4, 5)), where the shape is an attribute.
    "a shape only": apply("ones", ShapeExpr((4, 5)), dtype="float32"),
    "a variable that is called": Call(Var("f"), (ONE,)),
    "effects": call_packed("f", [ONE], [ObjectStructInfo()]),
    "outside of the graph": call_packed("f", [ONE], [ObjectStructInfo()], pure=True),
}


@pytest.mark.parametrize("case", UNFOLDED)
def test_what_is_not_folded_stays_the_same_object(case: str) -> None:
    assert fold(UNFOLDED[case]) is UNFOLDED[case]


@pytest.mark.parametrize("case", UNFOLDED)
def test_the_pass_of_the_compiler_does_not_fold_it_either(case: str) -> None:
    call = UNFOLDED[case]
    body = SeqExpr((), call)
    function = Function(free_vars(call), body, body.struct_info, is_pure=False)
    module = normalize(IRModule({"main": function}))

    assert fold_constant(module) is module


# --- Let ------------------------------------------------------------------------------------

LET = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
    a = R.add(R.const(1.0, "float32"), R.const(2.0, "float32"))
    b = R.multiply(a, a)
    t = (b, x)
    d = t[0]
    e = R.add(x, d)
    if c:
        f = R.negative(b)
        g = R.add(e, f)
    else:
        g = e
    return g
"""

FOLDED = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
    t = (R.const(9.0, "float32"), x)
    e = R.add(x, R.const(9.0, "float32"))
    if c:
        g = R.add(e, R.const(-9.0, "float32"))
    else:
        g = e
    return g
"""


def test_what_is_bound_to_a_constant_is_propagated_into_the_body() -> None:
    before = parse(LET)

    after = fold_constant_pass(before)

    assert_well_formed(after)
    assert_structural_equal(after, parse(FOLDED))
    for flag in (True, False):
        expected = evaluate(before, "main", floats(2, 3), np.bool_(flag))
        result = evaluate(after, "main", floats(2, 3), np.bool_(flag))
        np.testing.assert_array_equal(result, expected, strict=True)


def test_the_pass_of_the_compiler_does_the_same() -> None:
    assert_structural_equal(fold_constant(parse(LET)), parse(FOLDED))


def test_a_binding_that_is_not_constant_stays_the_same_object() -> None:
    function = parse(FOLDED)["main"]
    assert isinstance(function, Function)

    assert fold(function) is function
