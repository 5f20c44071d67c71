"""The search for a condition under which a failing rule holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.errors import SaturationError
from relax_egraph.verify.edges import in_halves, with_empty_axes
from relax_egraph.verify.failures.guards import missing_guard
from relax_egraph.verify.failures.judge import differ
from relax_egraph.verify.failures.shown import names_of
from relax_egraph.verify.failures.terms import Unknown, equated
from relax_egraph.verify.group import Group
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.values.compare import stated

_DRAWN, _ATTEMPTS = 100, 360
"""Instances that are sorted into good and bad ones, and the most attempts to draw them."""

_CANDIDATE = 120
"""Instances for a rule with an additional premise, most of them tried without egglog."""

_SMALL = 0.3
_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Conditions:
    """Trials of one rule that equates values, with additional premises."""

    book: RuleBook
    pattern: Direction
    random: Random
    trials: int = 20

    def missing(self) -> str:
        """The text of `missing_guard` for the rule; empty if no premise helps."""
        if not equated(self.pattern):
            return ""
        try:
            drawn = list(self.drawn(self.pattern, _DRAWN))
            instances = [*drawn, *with_empty_axes(drawn), *in_halves(drawn)]
            failing = [self.fails(self.pattern, i) for i in instances]
        except Unknown:
            return ""
        good = [i for i, fails in zip(instances, failing, strict=True) if not fails]
        bad = [i for i, fails in zip(instances, failing, strict=True) if fails]
        return missing_guard(self.pattern, good, bad, self.passes)

    def drawn(self, pattern: Direction, count: int) -> Iterator[Instance]:
        """Up to `count` instances of `pattern`, some of them with few and small extents."""
        group = self.group(pattern)
        small = (self.random.random() < _SMALL for _ in range(_ATTEMPTS))
        attempts = (group.attempt((pattern,), is_small) for is_small in small)
        return islice((i for i in attempts if i is not None and _is_complete(pattern, i)), count)

    def fails(self, pattern: Direction, instance: Instance) -> bool:
        """Whether the sides differ beyond the stated float class; raises `Unknown`."""
        return differ(pattern, instance, self.book.declarations, _SEEDS, stated(pattern.rule))

    def passes(self, pattern: Direction) -> bool:
        """Whether `pattern` matches instances, and holds on all of them."""
        count = 0
        for instance in self.drawn(pattern, _CANDIDATE):
            if self.fails(pattern, instance):
                return False
            count += 1
        if count < self.trials:
            return False
        group = self.group(pattern)
        try:
            fired, wrong = group.tried(list(group.draw([pattern.name], small=False)))
        except SaturationError:
            return False
        return bool(fired) and not any(w.exceeds for w in wrong)

    def group(self, pattern: Direction) -> Group:
        """The group of the pattern alone, with the rules that deduce its premises."""
        group = Group(self.book, pattern, self.random, self.trials)
        group.chains[pattern.name] = (pattern,)
        return group


def _is_complete(pattern: Direction, instance: Instance) -> bool:
    """Whether `instance` has all tensors that the rule names; some occur in premises only."""
    tensors = (v for v in names_of(pattern, instance) if v in instance.problem.shapes)
    return all(v in instance.problem.needed for v in tensors)
