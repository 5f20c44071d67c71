"""What the steps of a trace may do to rounding.

A rule that reads what others deduced is held to what these state, too: what it equates is right by
theirs.  ``(reweighted t u x w y v how)`` says that y, convolved with v, is t, and it is a
scale that was folded into the weight.  And a relation is of all that is equal to what it was said
of, which may be rounded elsewhere.
"""

from collections.abc import Iterable

from relax_egraph.egraph.rulebook.rule import FloatClass
from relax_egraph.proof.difference import all_steps
from relax_egraph.proof.trace import Step, Trace

_ORDER: tuple[FloatClass, ...] = ("unstated", "exact", "reassociates", "fast", "bounded")


def float_classes(trace: Trace) -> dict[Step, FloatClass]:
    """The float class of each step, and of those that its premises hold by: the worst of its rules.

    What is generated of operators is exact.
    """
    return {step: _worst(trace, step) for step in all_steps(trace.steps)}


def _worst(trace: Trace, step: Step) -> FloatClass:
    deduces = any(inner.deduced for inner in all_steps([step]))
    classes: list[FloatClass] = ["reassociates" if deduces else "exact"]
    return _worst_of(classes + [trace.rules[n].float_class for n in step.rules if n in trace.rules])


def _worst_of(classes: Iterable[FloatClass]) -> FloatClass:
    return _ORDER[max(map(_ORDER.index, classes))]
