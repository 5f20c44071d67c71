"""Whether a rule that fails has a condition under which it does not."""

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
"""So many instances are sorted into those on which a rule holds and the others."""

_CANDIDATE = 120
"""So many instances of a rule with a further premise are tried, most of them without egglog."""

_SMALL = 0.3
_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is tried of one rule that equates values, and states the truth of what it matches."""

    book: RuleBook
    pattern: Direction
    random: Random
    trials: int = 20

    def missing(self) -> str:
        """The premise that the rule lacks, as `missing_guard` says it; empty if none is found."""
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
        """Up to `count` instances of what `pattern` matches; extents of some are few and small."""
        group = self.group(pattern)
        small = (self.random.random() < _SMALL for _ in range(_ATTEMPTS))
        attempts = (group.attempt((pattern,), is_small) for is_small in small)
        found = (i for i in attempts if i is not None and _is_told(pattern, i))
        return islice(found, count)

    def fails(self, pattern: Direction, instance: Instance) -> bool:
        """Whether the sides differ by more than is stated; raises `Unknown`."""
        return differ(pattern, instance, self.book.declarations, _SEEDS, stated(pattern.rule))

    def passes(self, pattern: Direction) -> bool:
        """Whether `pattern` matches, and holds whenever it does."""
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
        """The pattern with nothing but what deduces its facts."""
        group = Group(self.book, pattern, self.random, self.trials)
        group.chains[pattern.name] = (pattern,)
        return group


def _is_told(pattern: Direction, instance: Instance) -> bool:
    """Whether `instance` has all tensors that the rule names; one may be in no term of it."""
    tensors = (v for v in names_of(pattern, instance) if v in instance.problem.shapes)
    return all(v in instance.problem.needed for v in tensors)
