"""Outer products and einsum: numbers, edges, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Expr, Tuple, Var
from relax_egraph.ir.struct_info import StructInfo, tensor
from tests.support.applied import both, computed, f32, inferred, of, refusal

n, m = dims.symbol("n"), dims.symbol("m")


def test_an_outer_product_has_a_row_for_each_element_of_the_first() -> None:
    for result in both("outer", f32(1, 2), f32(3, 4, 5)):
        np.testing.assert_array_equal(result, f32([[3, 4, 5], [6, 8, 10]]), strict=True)


A, B = f32([[1, 2], [3, 4]]), f32([[1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("subscripts", "operands", "expected"),
    [
        ("ij,jk->ik", (A, B), A @ B),
        ("ba,cb", (A, B), A.T @ B.T),
        ("ij,ji", (A, B), 7),
        ("ii", (A,), 5),
        ("ii->i", (A,), [1, 4]),
        ("b...a->...", (A,), 10),
        ("i...,...->...i", (A, f32(1, 10)), [[1, 3], [20, 40]]),
        ("i->", (f32([]),), 0),
        (",", (f32(2), f32(3)), 6),
    ],
)
def test_products_are_summed_over_what_the_result_has_not(
    subscripts: str, operands: tuple[Any, ...], expected: Any
) -> None:
    for result in both("einsum", operands, subscripts=subscripts):
        np.testing.assert_array_equal(result, f32(expected), strict=True)


def test_booleans_are_joined_by_or_of_and() -> None:
    x = np.array([[True, True], [False, True]])

    for result in both("einsum", (x, x), subscripts="ij,jk->ik"):
        np.testing.assert_array_equal(result, x, strict=True)


def of_tuple(*fields: Expr) -> Expr:
    return Tuple(fields)


SAID = 'R.einsum of R.Tensor((2, 3), "float32"), R.Tensor((4, 5), "float32") by'


@pytest.mark.parametrize(
    ("subscripts", "problem"),
    [
        ("ij,jk->ik", '"j" is of extent 3 and of 4'),
        ("ij", "1 terms for 2 operands"),
        ("ijk,kl", '"ijk" does not fit an operand of rank 2'),
        ("i,kl", '"i" does not fit an operand of rank 2'),
        ("i.j,kl", '"i.j" is not of letters and at most one ellipsis'),
        ("ij,kl->ii", 'the result "ii" repeats a letter'),
        ("ij,kl->im", 'the letter "m" of the result is of no operand'),
        ("i...,kl->ikl", "the result needs an ellipsis, as an operand has one"),
        ("i...,k...", "the axes of the ellipsis do not broadcast"),
    ],
)
def test_subscripts_that_do_not_fit_are_refused(subscripts: str, problem: str) -> None:
    message = refusal("einsum", of_tuple(of(2, 3), of(4, 5)), subscripts=subscripts)

    assert message == f'{SAID} "{subscripts}": {problem}'


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            (of(2), of(3, 1)),
            'R.outer of R.Tensor((2,), "float32"), R.Tensor((3, 1), "float32"): '
            "x2 has rank 2, needs 1",
        ),
        (
            (of(2), of(3, dtype="int8")),
            'R.outer of R.Tensor((2,), "float32"), R.Tensor((3,), "int8"): '
            "needs operands of one dtype",
        ),
    ],
)
def test_ill_typed_outer_products_are_refused(args: tuple[Expr, ...], message: str) -> None:
    assert refusal("outer", *args) == message


def unknown(ndim: int = -1) -> Var:
    return Var("u", tensor(None, "float32", ndim))


@pytest.mark.parametrize(
    ("subscripts", "operands", "expected"),
    [
        ("ij,jk->ik", (of(n, 3), of(3, m)), tensor((n, m), "float32")),
        ("ij,jk->ikj", (of(n, m), of(4, n)), tensor((n, n, 4), "float32")),
        ("ij,jk->ik", (of(n, 3), unknown(2)), tensor(None, "float32", 2)),
        ("ij,jk->j", (unknown(2), of(n, 3)), tensor((n,), "float32")),
        ("ij,jk", (of(n, 3), unknown()), tensor(None, "float32", 2)),
        ("...j,jk", (of(n, 3), unknown()), tensor(None, "float32")),
        ("...j,...j", (of(n, 3), of(m, 3)), tensor(None, "float32", 1)),
        ("...j,...j", (of(n, 3), of(1, 3)), tensor((n,), "float32")),
    ],
)
def test_what_is_known_of_an_einsum(
    subscripts: str, operands: tuple[Expr, ...], expected: StructInfo
) -> None:
    assert inferred("einsum", of_tuple(*operands), subscripts=subscripts) == expected


def test_an_extent_of_1_is_not_stretched_to_that_of_its_letter() -> None:
    with pytest.raises(RunError) as refused:
        computed("einsum", (np.ones(1), np.ones(2)), subscripts="i,i")

    assert str(refused.value).endswith(': "i" is of extent 1 and of 2')
