"""Whatever a premise reads has rules behind it: a proof has them, and names what is false."""

import pytest

import relax_egraph as rx
from relax_egraph.errors import ReplayError
from relax_egraph.proof.replay import replay
from relax_egraph.reasons.explain import Reasons
from tests.support.false_deductions import FALSE_DEDUCTIONS, FalseDeduction

NAMED = ("a number is moved", "below a step of one's own")
"""Those of which every run sees that they are named; the long ones see it of all."""


def explained(planted: FalseDeduction) -> Reasons:
    return rx.explain(planted.module, [planted.rules])


def blamed(reasons: Reasons) -> tuple[str, ...]:
    (trace,) = reasons.traces
    with pytest.raises(ReplayError) as error:
        replay(trace)
    return error.value.rules


def test_there_are_twenty() -> None:
    assert len(FALSE_DEDUCTIONS) == 20


@pytest.mark.parametrize("name", FALSE_DEDUCTIONS)
def test_the_proof_has_what_its_premises_rest_on(name: str) -> None:
    planted = FALSE_DEDUCTIONS[name]
    reasons = explained(planted)

    assert planted.false in {rule for trace in reasons.traces for rule in trace.written}
    assert planted.false in reasons.proof_text()


@pytest.mark.parametrize("name", NAMED)
def test_what_is_false_is_named(name: str) -> None:
    planted = FALSE_DEDUCTIONS[name]

    assert blamed(explained(planted))[0] == planted.false


@pytest.mark.fuzz
@pytest.mark.parametrize("name", FALSE_DEDUCTIONS)
def test_each_that_is_false_is_named(name: str) -> None:
    """By replay, by what its loss would cost, and by the check of its file."""
    planted = FALSE_DEDUCTIONS[name]
    reasons = explained(planted)

    assert blamed(reasons)[0] == planted.false
    gained = next(gain for gain in reasons.gains if gain.rule.name == planted.false)
    assert gained.cost >= reasons.cost
    wrong = {v.rule for v in rx.rules.check(planted.rules, processes=1) if not v.sound}
    assert planted.false in wrong


def test_a_sum_of_squares_that_is_one_has_its_share() -> None:
    """What makes a value constant that another rule then drops is worth what that is."""
    planted = FalseDeduction(
        "pythagoras",
        """(rewrite (R.add (R.square (R.sin x)) (R.square (R.cos x)))
             (R.broadcast_to (R.const 1.0 "float32") s)
             :when ((= s (shape-of x)) (= "float32" (dtype-of x))) :name "pythagoras")""",
        "R.multiply(y, R.add(R.square(R.sin(x)), R.square(R.cos(x))))",
    )
    reasons = explained(planted)

    shares = {gain.rule.name: gain.share for gain in reasons.gains}
    assert shares["pythagoras"] > 0.1
    assert shares["multiply-one"] > 0.1
