"""Float classes of the steps of a trace.

A rule that reads deduced facts has the float classes of the rules that deduced them, too: its
equation rests on theirs.  For instance, ``(reweighted t u x w y v how)`` states that y, convolved
with v, is t, where a scale is folded into the weight v.  Besides, a relation holds for all terms
that are equal to its arguments, which may be rounded differently.
"""

from collections.abc import Iterable

from relax_egraph.egraph.rulebook.rule import FloatClass
from relax_egraph.proof.difference import all_steps
from relax_egraph.proof.trace import Step, Trace

_ORDER: tuple[FloatClass, ...] = ("unstated", "exact", "reassociates", "fast", "bounded")


def float_classes(trace: Trace) -> dict[Step, FloatClass]:
    """The float class of each step, and of each step for a premise: the worst of its rules.

    Generated rules are exact.
    """
    return {step: _worst(trace, step) for step in all_steps(trace.steps)}


def _worst(trace: Trace, step: Step) -> FloatClass:
    deduces = any(inner.deduced for inner in all_steps([step]))
    classes: list[FloatClass] = ["reassociates" if deduces else "exact"]
    return _worst_of(classes + [trace.rules[n].float_class for n in step.rules if n in trace.rules])


def _worst_of(classes: Iterable[FloatClass]) -> FloatClass:
    return _ORDER[max(map(_ORDER.index, classes))]
