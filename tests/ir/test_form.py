"""The form of a dimension, and what it becomes where it is folded."""

import ast
from collections.abc import Mapping

import pytest
from hypothesis import given, settings

from relax_egraph.ir import dims
from relax_egraph.ir.dim_form import form
from relax_egraph.ir.dim_text import written
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.form import EXTREMES, INTEGERS, Algebra, Form, Operation, fold, read
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import from_dim
from relax_egraph.vm.dim_program import compile_dim, parse_dim
from tests.support.random_dims import DIMS, VALUES


def symbol(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case _:
            raise ValueError(ast.unparse(node))


def parsed(text: str) -> Form:
    return read(ast.parse(text, mode="eval").body, symbol)


def in_slots(dim: Dim) -> str:
    """The text of `dim` over slots, n in the first one and m in the second."""
    slots = {"n": dims.symbol("@0"), "m": dims.symbol("@1")}
    return dims.text(dims.substitute(dim, slots))


@settings(max_examples=80, deadline=None)
@given(DIMS, VALUES)
def test_every_translation_has_the_value_of_the_dimension(
    dim: Dim, values: Mapping[str, int]
) -> None:
    integers = Algebra(int, values.__getitem__, INTEGERS)
    heap = [values["n"], values["m"]]
    slots = Algebra(int, lambda slot: heap[int(slot[1:])], INTEGERS)
    index = dim_of(from_dim(dim))
    text = in_slots(dim)

    assert index is not None
    found = [
        fold(form(dim), integers),
        fold(parsed(dims.text(dim)), integers),
        fold(parse_dim(text), slots),
        compile_dim(text)(heap),
        dims.evaluate(index, values),
    ]

    assert found == [dims.evaluate(dim, values)] * 5


@settings(max_examples=60, deadline=None)
@given(DIMS)
def test_a_form_becomes_its_dimension_and_its_text(dim: Dim) -> None:
    assert fold(form(dim), dims.ALGEBRA) == dim
    assert written(form(dim)) == dims.text(dim)
    assert fold(parsed(written(form(dim))), dims.ALGEBRA) == dim


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        ("7", 7),
        ("n", "n"),
        ("n - 5", Operation("-", ("n", 5))),
        ("-2 * n * m", Operation("*", (Operation("neg", ("m",)), "n", 2))),
        ("n * n", Operation("*", ("n", "n"))),
        ("(n + 1) // 2", Operation("//", (Operation("+", ("n", 1)), 2))),
        ("n % 8", Operation("%", ("n", 8))),
        ("min(n - 9, m)", Operation("min", ("m", Operation("-", ("n", 9))))),
    ],
)
def test_a_form_is_in_the_order_of_the_text(dim: str, expected: Form) -> None:
    assert form(dims.parse(dim)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("-5", "n - 5", "-n * 2 + 1", "-(n // 2)", "-(n * n)", "(n * n) * m", "(n // 2) * 4"),
        *("n * 4 // 3", "(n - 1) % (m + 1)", "n - (m - 1)", "min(-3, n, m * 2)", "n % (m % 4)"),
        *("(-n) // 2", "n // m // 2", "(n % 3) * (n + 1)"),
    ],
)
def test_parentheses_are_written_where_python_needs_them(text: str) -> None:
    found = written(parsed(text))

    values = {"n": 13, "m": 5}
    assert parsed(found) == parsed(text)
    assert eval(found, {"min": min}, values) == eval(text, {"min": min}, values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T.floordiv(n, 2)", Operation("//", ("n", 2))),
        ("floormod(n, 2)", Operation("%", ("n", 2))),
        ("T.max(n, m, 2)", Operation("max", ("n", "m", 2))),
    ],
)
def test_scripts_write_operators_as_functions(text: str, expected: Form) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("text", "left_over"),
    [
        ("n + f(1)", "f(1)"),
        ("min(n)", "min(n)"),
        ("min(n, m, key=f)", "min(n, m, key=f)"),
        ("floordiv(n, m, 2)", "floordiv(n, m, 2)"),
        ("x.min(n, m)", "x.min(n, m)"),
        ("n / 2", "n / 2"),
        ("True * n", "True"),
        ("+n", "+n"),
    ],
)
def test_what_is_neither_a_number_nor_an_operation_is_a_leaf(text: str, left_over: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the whole text is compared
        parsed(text)

    assert str(refusal.value) == left_over


def test_functions_of_scripts_are_not_those_of_python() -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the whole text is compared
        read(ast.parse("floordiv(n, 2)", mode="eval").body, symbol, EXTREMES)

    assert str(refusal.value) == "floordiv(n, 2)"


N = dims.symbol("n")


@pytest.mark.parametrize(
    ("dim", "message"),
    [
        (N / 2, "n/2 is no dimension: it has a fraction"),
        (2**N, "2**n is no dimension: it is not built of + - * // % min max"),
    ],
)
def test_what_is_no_dimension_has_no_form(dim: Dim, message: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the whole text is compared
        form(dim)

    assert str(refusal.value) == message
