"""The bench of discovery reads rules of the book as equations of terms."""

from bench.discovery import searches
from bench.stated import wanted
from relax_egraph.discover.run import Search

_FEW = "its sides have values in too few worlds"
"""Of numbers that have another shape than the tensors."""


def test_rules_are_equations_of_terms_or_say_why_not() -> None:
    read = {rule.name: str(rule.equation or rule.reason) for rule in wanted(["reductions"])}

    assert read == {
        **dict.fromkeys(("sum-of-multiple", "sum-of-quotient"), _FEW),
        **dict.fromkeys(("max-of-shifted", "max-of-multiple"), _FEW),
        **dict.fromkeys(("sum-of-sum", "max-of-max"), "it reads axes-of-both"),
        **dict.fromkeys(("mean-of-shifted", "reduction-of-broadcast"), "it reads vec-length"),
        "sum-of-matmul": "it reads rank-of",
        "sum-of-negative": "(R.sum (R.negative x) a keep) = (R.negative (R.sum x a keep))",
        "add-of-sums": "(R.add (R.sum x a keep) (R.sum y a keep)) = (R.sum (R.add x y) a keep)",
        "add-of-means": "(R.add (R.mean x a keep) (R.mean y a keep)) = (R.mean (R.add x y) a keep)",
        "max-of-negative": "(R.max (R.negative x) a keep) = (R.negative (R.min x a keep))",
        "min-of-negative": "(R.min (R.negative x) a keep) = (R.negative (R.max x a keep))",
    }


def test_a_search_has_the_operators_of_a_rule_and_no_fewer_than_another() -> None:
    equations = [rule.equation for rule in wanted(["reductions"])]
    stated = [e for e in equations if e is not None and "R.max" in str(e)]

    assert list(searches(stated, 3)) == [Search(("R.max", "R.min", "R.negative"), 2, numbers=())]
