"""What the steps of a trace may do to rounding.

A rule that reads a relation is held to what the rules that make it state, too: what it equates is
right by theirs.  ``(reweighted t u x w y v how)`` says that y, convolved with v, is t, and it is a
scale that was folded into the weight.  And a relation is of all that is equal to what it was said
of, which may be rounded elsewhere.
"""

from collections.abc import Iterable

from relax_egraph.egraph.loader import FloatClass, RuleInfo
from relax_egraph.proof.difference import all_steps
from relax_egraph.proof.grounds import Grounds
from relax_egraph.proof.trace import Step, Trace

_ORDER: tuple[FloatClass, ...] = ("unstated", "exact", "reassociates", "fast", "bounded")


def float_classes(trace: Trace) -> dict[Step, FloatClass]:
    """The float class of each step, and of those that are given to it: the worst that it holds by.

    What is generated of operators is exact.
    """
    grounds = Grounds.of(trace.rules.values())
    names = {name for step in trace.steps for name in step.rules}
    worst: dict[str, FloatClass] = {
        n: _worst(trace.rules[n], grounds) for n in names if n in trace.rules
    }
    return {
        step: _worst_of(worst.get(n, "exact") for n in step.rules)
        for step in all_steps(trace.steps)
    }


def _worst(rule: RuleInfo, grounds: Grounds) -> FloatClass:
    found = grounds.below(rule)
    least: FloatClass = "exact" if len(found) == 1 else "reassociates"
    return _worst_of((least, *(r.float_class for r in found)))


def _worst_of(classes: Iterable[FloatClass]) -> FloatClass:
    return _ORDER[max(map(_ORDER.index, classes))]
