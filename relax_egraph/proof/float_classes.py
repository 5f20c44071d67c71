"""What the steps of a trace may do to rounding.

A rule that reads a relation is held to what the rules that make it state, too: what it equates is
right by theirs.  ``(reweighted t u x w y v how)`` says that y, convolved with v, is t, and it is a
scale that was folded into the weight.  And a relation is of all that is equal to what it was said
of, which may be rounded elsewhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from relax_egraph.egraph.loader import FloatClass, RuleInfo
from relax_egraph.proof.difference import all_steps
from relax_egraph.proof.trace import Step, Trace
from relax_egraph.verify.instances.query import patterns_of
from relax_egraph.verify.instances.unfold import relations_of

_ORDER: tuple[FloatClass, ...] = ("unstated", "exact", "reassociates", "fast", "bounded")


def float_classes(trace: Trace) -> dict[Step, FloatClass]:
    """The float class of each step, and of those that are given to it: the worst that it holds by.

    What is generated of operators is exact.
    """
    makers: dict[str, list[RuleInfo]] = defaultdict(list)
    for rule in trace.rules.values():
        for name in _makes(rule):
            makers[name].append(rule)
    names = {name for step in trace.steps for name in step.rules}
    worst: dict[str, FloatClass] = {
        n: _worst(trace.rules[n], makers) for n in names if n in trace.rules
    }
    return {
        step: _worst_of(worst.get(n, "exact") for n in step.rules)
        for step in all_steps(trace.steps)
    }


def _worst(rule: RuleInfo, makers: Mapping[str, list[RuleInfo]]) -> FloatClass:
    found, todo = {rule}, [rule]
    while todo:
        above = {maker for name in _reads(todo.pop()) for maker in makers.get(name, ())}
        todo += above - found
        found |= above
    least: FloatClass = "exact" if len(found) == 1 else "reassociates"
    return _worst_of((least, *(r.float_class for r in found)))


def _worst_of(classes: Iterable[FloatClass]) -> FloatClass:
    return _ORDER[max(map(_ORDER.index, classes))]


@lru_cache(1 << 12)
def _makes(rule: RuleInfo) -> frozenset[str]:
    """The relations that `rule` adds to."""
    return frozenset(relations_of(rule))


@lru_cache(1 << 12)
def _reads(rule: RuleInfo) -> frozenset[str]:
    """The names that `rule` reads, relations among them."""
    return frozenset(name for pattern in patterns_of(rule) for name in pattern.reads)
