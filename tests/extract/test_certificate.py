"""The certificate refuses what does not hold, and says all of it."""

from dataclasses import replace

import pytest

from relax_egraph.errors import ExtractionError
from relax_egraph.extract.certificate import certify, cheapest
from relax_egraph.extract.problem import Candidate, Problem, Selection

PROBLEM = Problem(
    (
        Candidate(0, frozenset(), 1.0),
        Candidate(1, frozenset({0}), 2.0),
        Candidate(2, frozenset({1}), 4.0),
        Candidate(1, frozenset({2}), 0.5),
    ),
    (2,),
)
GOOD = Selection((0, 1, 2), 7.0, 7.0, "optimal", "HiGHS", 0.0)


def faults(selection: Selection) -> list[str]:
    with pytest.raises(ExtractionError) as caught:
        certify(PROBLEM, selection)
    first, *rest = str(caught.value).splitlines()
    assert first == "the selection does not hold:"
    return rest


def test_a_solution_passes() -> None:
    certify(PROBLEM, GOOD)


def test_a_class_that_is_not_made_is_missed() -> None:
    found = faults(replace(GOOD, chosen=(1, 2), cost=6.0, bound=6.0))

    assert found == ["class 0 is not made, and class 1 needs it"]


def test_a_root_that_is_not_made_is_missed() -> None:
    assert faults(replace(GOOD, chosen=(0, 1), cost=3.0, bound=3.0)) == ["root 2 is not made"]


def test_a_class_that_is_made_twice_is_refused() -> None:
    found = faults(replace(GOOD, chosen=(0, 1, 2, 3), cost=7.5))

    assert found == ["class 1 is made 2 times"]


def test_a_cycle_is_refused() -> None:
    found = faults(replace(GOOD, chosen=(3, 2), cost=4.5, bound=4.5))

    assert found == [
        "class 1 is made before class 2, its input",
        "there is a cycle among the classes [1, 2]",
    ]


def test_a_wrong_order_is_refused() -> None:
    found = faults(replace(GOOD, chosen=(1, 0, 2)))

    assert found == ["class 1 is made before class 0, its input"]


def test_a_wrong_cost_is_refused() -> None:
    found = faults(replace(GOOD, cost=7.25))

    assert found == ["the cost is said to be 7.25, the candidates cost 7"]


def test_a_bound_above_the_cost_is_refused() -> None:
    found = faults(replace(GOOD, bound=8.0))

    assert found == ["the bound 8 is above the cost 7, says: HiGHS"]


def test_numbers_that_are_none_are_refused() -> None:
    found = faults(replace(GOOD, cost=float("nan"), bound=float("nan")))

    assert found == [
        "the cost is said to be nan, the candidates cost 7",
        "the bound nan is above the cost nan, says: HiGHS",
    ]


def test_everything_is_tried_for_the_cheapest() -> None:
    assert cheapest(PROBLEM) == 7.0
    assert cheapest(replace(PROBLEM, roots=(9,))) == float("inf")


def test_not_everything_is_tried_for_many_classes() -> None:
    many = Problem(tuple(Candidate(c, frozenset(), 1.0) for c in range(25)), (0,))

    with pytest.raises(ValueError, match="25 classes are too many to try everything"):
        cheapest(many)
