"""Premises that are false of the values so far: which are, and that no instance is lost by it."""

from collections.abc import Mapping
from typing import Any

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source, Tree
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import ShapeExpr, TensorStructInfo
from relax_egraph.prove import matching
from relax_egraph.prove.contradictions import is_false
from relax_egraph.prove.nodes import Leaf
from relax_egraph.prove.prove import prove

pytest.importorskip("z3", reason="proofs need z3-solver")

BOOK = RuleBook.default(fast_math=True, bounded=True)
RULES = {rule.name: rule for rule in BOOK.rules}


def leaf(name: str, dtype: str, *shape: dims.Dim) -> Leaf:
    return Leaf(name, TensorStructInfo(ShapeExpr(shape), dtype, len(shape)))


N = dims.symbol("n")
VALUES: dict[str, Any] = {
    **{"x": leaf("x", "float32", N, 3), "y": leaf("y", "int8", N, 3), "z": leaf("z", "float32", N)},
    **{"k": 1, "axes": (0, 2), "shape": (N, 4), "flag": False, "n": N},
}
"""The values of some variables; `unknown` has none."""

FALSE = (
    *("(= k 2)", "(= axes (vec-of 0 1))", '(= (dtype-of x) "int8")', "(= (rank-of z) 2)"),
    *("(= shape (shape-of x))", "(= (shape-of x) (shape-of z))", "(= x y)", "(= x z)"),
    *("(< k 1)", "(<= 2 k)", "(> k (vec-get axes 1))", "(>= k (vec-length axes))"),
    *("(is-float y)", "(vec-contains axes 1)", "(vec-not-contains axes 2)", "(not (< k 2))"),
    *("(and flag true)", "(= (vec-get (shape-of x) 1) 4)", "(< (+ k k) 2)"),
)
OPEN = (
    *("(= k 1)", "(= axes (vec-of 0 2))", "(= k unknown)", "(= (rank-of unknown) 2)"),
    *("(= shape (shape-of unknown))", "(= (vec-get shape 0) 4)", "(= n 4)", "(< n 4)"),
    *("(= k (vec-get axes 7))", "(is-float x)", "(is-float unknown)", "(vec-contains axes 2)"),
    *("(vec-contains axes unknown)", "(= x (R.exp z))", "(= (const-scalar x) 1.0)"),
    *("(dim-ge k 4)", "(has-reciprocal k)"),
)


def false(text: str) -> bool:
    (fact,) = read(Source("premise", text))
    return is_false(fact, VALUES)


@pytest.mark.parametrize("text", FALSE)
def test_a_premise_is_false_of_what_is_known(text: str) -> None:
    assert false(text)


@pytest.mark.parametrize("text", OPEN)
def test_a_premise_may_be_true_of_what_is_known(text: str) -> None:
    assert not false(text)


FAST = ("all-gather-of-shards", "permute-and-back", "split-as-slice")
SLOW = ("concat-before-concat", "concat-by-parts", "norm-as-sum", "slice-of-matmul", "sum-of-sum")


SCHEDULE = ((2, 200_000),)
"""One pass with enough steps for all instances, those of which a premise is false included."""


def never(fact: Tree, values: Mapping[str, Any]) -> bool:
    return False


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(n, marks=pytest.mark.fuzz) for n in SLOW)])
def test_no_instance_is_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relax_egraph.prove.prove.PASSES", SCHEDULE)
    found = prove(RULES[name], BOOK)
    monkeypatch.setattr(matching, "is_false", never)
    every = prove(RULES[name], BOOK)

    assert (found.status, found.reason, found.ranks) == (every.status, every.reason, every.ranks)
    assert (found.forms, found.queries) == (every.forms, every.queries)
