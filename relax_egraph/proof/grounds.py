"""What a trace rests on: the rules of its steps, and those that wrote the relations they read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from relax_egraph.egraph.loader import RuleInfo
from relax_egraph.proof.trace import Trace
from relax_egraph.verify.instances.makers import reads_of, relations_of
from relax_egraph.verify.instances.query import patterns_of


@dataclass(frozen=True, slots=True)
class Grounds:
    """By relation, the rules that add to it."""

    makers: Mapping[str, Sequence[RuleInfo]]

    @staticmethod
    def of(rules: Iterable[RuleInfo]) -> "Grounds":
        """Those of `rules`."""
        makers: dict[str, list[RuleInfo]] = defaultdict(list)
        for rule in rules:
            for name in _makes(rule):
                makers[name].append(rule)
        return Grounds(makers)

    def below(self, rule: RuleInfo) -> set[RuleInfo]:
        """`rule`, those that may have written what it reads, those of what these read, and on."""
        found, todo = {rule}, [rule]
        while todo:
            read = _reads(todo.pop())
            new = {m for name in read for m in self.makers.get(name, ())} - found
            todo += new
            found |= new
        return found


def grounds_of(trace: Trace) -> set[str]:
    """The names of the rules that `trace` rests on, as they are written."""
    grounds = Grounds.of(trace.rules.values())
    used = {trace.rules[n] for step in trace.steps for n in step.rules if n in trace.rules}
    return {rule.name for one in used for rule in grounds.below(one)}


@lru_cache(1 << 12)
def _makes(rule: RuleInfo) -> frozenset[str]:
    """The relations that `rule` adds to."""
    return frozenset(relations_of(rule))


@lru_cache(1 << 12)
def _reads(rule: RuleInfo) -> frozenset[str]:
    """The names that `rule` reads, relations among them."""
    return frozenset[str]().union(*map(reads_of, patterns_of(rule)))
