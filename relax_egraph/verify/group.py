"""Trials of a rule that equates values, together with rules that deduce its premises.

An instance counts for every rule that took part in drawing it.  The blame for wrong instances goes
to the rules with the largest share of wrong instances (`blame.py`), unless rules that are unsound
themselves explain all of these.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.errors import SaturationError
from relax_egraph.verify.blame import Evidence, uses
from relax_egraph.verify.edges import in_halves, with_empty_axes
from relax_egraph.verify.failures.shrink import minimal
from relax_egraph.verify.instances.chains import chains_to, deduced_by_none
from relax_egraph.verify.instances.draw import Instance, draw_instance
from relax_egraph.verify.instances.makers import makers_of, needed, reads_in
from relax_egraph.verify.instances.problem import Contradiction
from relax_egraph.verify.instances.resolve import problem_of
from relax_egraph.verify.instances.unfold import unfold
from relax_egraph.verify.trials import tried
from relax_egraph.verify.values.claims import truthful
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.values.compare import Wrong, stated
from relax_egraph.verify.values.inputs import KINDS, OF_HALVES, Kind
from relax_egraph.verify.values.tolerance import ORDER, ordered
from relax_egraph.verify.verdict import Counterexample, Verdict, silent

_BATCHES = 6
_SPARE = 3
"""One spare instance is drawn for this number of instances: some are not matched."""

_HOPELESS = 60
"""Failed attempts in a row after which no further instance of a rule is drawn."""

_READERS = 8
"""The number of other readers of a deduced fact with which a doubted deduction is tried."""

_UNFOLDINGS = 8
"""Contradictory choices of rules for premises after which an attempt has failed."""

_IN_VAIN = 40
"""Instances without a match after which no further instance of a rule is drawn."""


@dataclass(slots=True)
class Group:
    """A rule that equates values, and the `chains` to rules that deduce its premises.

    Each rule has to match in `trials` instances.  A wrong instance in which one of the `doubted`
    rules took part is no evidence against other rules.
    """

    book: RuleBook
    head: Direction
    random: Random
    trials: int = 20
    doubted: frozenset[str] = frozenset()
    chains: dict[str, tuple[Direction, ...]] = field(
        default_factory=dict[str, tuple[Direction, ...]]
    )
    refused: dict[str, Counter[str]] = field(
        default_factory=lambda: defaultdict[str, Counter[str]](Counter)
    )
    drawn: Counter[str] = field(default_factory=Counter[str])
    fired: list[Instance] = field(default_factory=list[Instance])
    wrong: list[Wrong] = field(default_factory=list[Wrong])
    hopeless: set[str] = field(default_factory=set[str])
    leaving: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    left: dict[Instance, frozenset[str]] = field(default_factory=dict[Instance, frozenset[str]])

    def verdicts(self) -> Iterator[Verdict]:
        """The verdicts on the rules of the group."""
        try:
            self.run()
        except SaturationError as problem:
            for chain in self.chains.values():
                yield replace(silent(chain[-1].rule, str(problem)), needs="unsound")
            return
        blamed = self.blamed()
        for name, chain in self.chains.items():
            yield self.verdict(name, chain, name in blamed)

    def run(self) -> None:
        """Draw and try instances until each rule has enough of them, or one is wrong."""
        names = tuple(self.chains)
        for _ in range(_BATCHES):
            lacking = self.lacking(names)
            if not lacking:
                return
            instances = list(self.draw(lacking, small=False))
            halves = self.consistent(in_halves(instances))
            empty = self.consistent(with_empty_axes(instances))
            wrong = [
                *self.record(self.tried([*instances, *empty])),
                *self.record(self.tried(halves, OF_HALVES)),
            ]
            self.hopeless |= {
                n for n in self.chains if self.drawn[n] > _IN_VAIN and not self.count(n)
            }
            if any(w.exceeds for w in wrong):
                return

    def lacking(self, names: Sequence[str]) -> list[str]:
        """The rules among `names` that need more instances."""
        return [n for n in names if n not in self.hopeless and self.count(n) < self.trials]

    def count(self, name: str) -> int:
        """The number of matched instances of the rule `name`."""
        return sum(self.uses(i, name) for i in self.fired)

    def uses(self, instance: Instance, name: str) -> bool:
        """Whether the rule `name` took part in drawing `instance`."""
        return uses(self.head.name, instance, name)

    def draw(self, names: Sequence[str], small: bool) -> Iterator[Instance]:
        """Instances for each of `names`; an instance counts for all rules that it uses."""
        lacking = {n: self.trials + self.trials // _SPARE - self.count(n) for n in names}
        for name in names:
            failed, drawn = 0, 0
            while lacking[name] > 0 and failed < _HOPELESS:
                instance = self.attempt(self.chains[name], small)
                if instance is None:
                    failed += 1
                    continue
                failed, drawn = 0, drawn + 1
                for other in names:
                    lacking[other] -= self.uses(instance, other)
                self.drawn.update(n for n in names if self.uses(instance, n))
                yield instance
            if not drawn and lacking[name] > 0:
                self.hopeless.add(name)

    def record(self, trial: tuple[list[Instance], list[Wrong]]) -> list[Wrong]:
        """Record the matched and the wrong instances of a trial; return the wrong ones."""
        fired, wrong = trial
        self.fired += fired
        self.leaving += [self.left[i] for i in fired if i in self.left]
        self.wrong += wrong
        return wrong

    def consistent(self, instances: Iterable[Instance]) -> list[Instance]:
        """The `instances` whose claims about constants are true."""
        return [i for i in instances if truthful(i, self.book.declarations)]

    def attempt(self, chain: Sequence[Direction], small: bool) -> Instance | None:
        """A random instance of the pattern at the end of `chain`, or ``None``."""
        makers, refused = makers_of(self.book), self.refused[chain[-1].name]
        for _ in range(_UNFOLDINGS):
            left = self.leave(chain)
            try:
                unfolded = unfold(chain, makers, self.random, left)
                problem = problem_of(unfolded.query, self.book.declarations, self.random)
                break
            except Contradiction as reason:
                refused[str(reason)] += 1
        else:
            return None
        instance = draw_instance(problem, unfolded.rules, self.random, refused, small)
        if instance is None:
            return None
        if not truthful(instance, self.book.declarations):
            refused["a value is not the number that a premise states"] += 1
            return None
        self.left[instance] = left
        return instance

    def leave(self, chain: Sequence[Direction]) -> frozenset[str]:
        """The walks that egglog computes itself; mostly a set that led to matches before."""
        if self.leaving and self.random.random() < 0.8:
            return self.random.choice(self.leaving)
        makers = makers_of(self.book)
        known = {name for p in chain for rule in needed(p.rule, makers) for name in reads_in(rule)}
        return frozenset(n for n in makers.walks if n in known and self.random.random() < 0.5)

    def tried(
        self, instances: Sequence[Instance], kinds: Sequence[Kind] = KINDS
    ) -> tuple[list[Instance], list[Wrong]]:
        """The matched and the wrong instances of a trial on `instances`."""
        return tried(self.book, self.head, self.random, instances, kinds)

    def blamed(self) -> set[str]:
        """The rules with the largest shares of wrong instances, without the excused ones."""
        bad = frozenset(w.instance for w in self.wrong if w.exceeds)
        evidence = Evidence(self.head.name, self.fired, bad)
        return {n for n in evidence.suspects(self.chains) if not self.excused(n, evidence)}

    def excused(self, name: str, evidence: Evidence) -> bool:
        """Whether a rule is wrong only together with rules that are unsound themselves.

        It reads facts that those rules deduce.  A rule of the book never excuses a rule of a user.
        """
        own, mine = self.chains[name][-1].rule.name, self.book.of_user
        worse = [n for n in evidence.worse(name) if n != own and (own not in mine or n in mine)]
        if not evidence.explained(name, worse):
            return False
        return evidence.explained(name, [n for n in worse if self.is_unsound(n)])

    def is_unsound(self, name: str) -> bool:
        """Whether a worse rule is under test itself, or is wrong below another rule, too.

        A deduction that nothing else reads has no other test: then it is the one to doubt.
        """
        if name in self.chains:
            return True
        rule = next(r for i in self.fired for r in i.rules if r.name == name)
        chains = [c for p in rule.directions for c in chains_to(p, self.book)]
        others = [c for c in chains if c and c[0].rule != self.head.rule]
        return not others or any(map(self.is_wrong_in, others[:_READERS]))

    def is_wrong_in(self, chain: tuple[Direction, ...]) -> bool:
        """Whether trials of another `chain` find a wrong instance with the rule at its end."""
        name = chain[-1].name
        group = Group(self.book, chain[0], self.random, self.trials, chains={name: chain})
        try:
            group.run()
        except SaturationError:
            return True
        return any(w.exceeds and group.uses(w.instance, name) for w in group.wrong)

    def verdict(self, name: str, chain: Sequence[Direction], blamed: bool) -> Verdict:
        """The verdict on one rule of the group; it is sound unless it is `blamed`."""
        rule = chain[-1].rule
        mine = [i for i in self.fired if self.uses(i, name)]
        if not mine:
            return silent(rule, self.why(name))
        others = self.doubted - {rule.name}
        wrong = [w for w in self.wrong if self.uses(w.instance, name)]
        wrong = [w for w in wrong if not any(self.uses(w.instance, n) for n in others)]
        exceeding = [w for w in wrong if w.exceeds] if blamed else []
        within = [ORDER.index(w.difference.need) for w in wrong if not w.exceeds]
        needs = ORDER[min(max((0, *within)), ORDER.index(stated(rule)))]
        milder = [w for w in wrong if w.difference.need != "unsound"]
        example = self.smallest(name, exceeding) if exceeding else None
        infos = [i.info(v) for i in mine for v in i.problem.shapes if v in i.problem.needed]
        return Verdict(
            rule.name,
            rule.span,
            rule.float_class,
            example.difference.need if example else needs,
            len(mine),
            tuple(sorted({str(i.dtype) for i in infos})),
            tuple(sorted({i.ndim for i in infos})),
            example,
            ulps=max((w.difference.ulps for w in milder), default=0.0),
            differs_on=ordered(frozenset[str]().union(*(w.difference.on for w in milder))),
        )

    def why(self, name: str) -> str:
        """The reason for which the rule `name` has not matched."""
        if underived := deduced_by_none(self.chains[name], self.book):
            return f"no rule deduces {underived}"
        if self.drawn[name]:
            return f"of {self.drawn[name]} instances that should match, egglog matched none"
        worst = self.refused[name].most_common(1)
        return f"no instance was found; mostly refused: {worst[0][0]}" if worst else "no instance"

    def smallest(self, name: str, wrong: Sequence[Wrong]) -> Counterexample:
        """A minimal counterexample, shrunk from the wrong instances with the worst difference."""
        most = ORDER[max(ORDER.index(w.difference.need) for w in wrong)]
        least, *others = sorted((w for w in wrong if w.difference.need == most), key=_size)
        seen = [w.seen for w in (least, *others)]
        pattern, declarations = self.chains[name][0], self.book.declarations
        shrunk = minimal(pattern, [*seen, *self.fired], declarations, self.differs, most)
        instance, difference = shrunk or (least.seen, least.difference)
        return Counterexample(pattern, instance, difference)

    def differs(self, instance: Instance) -> tuple[Instance, Difference] | None:
        """The difference on `instance` beyond the stated float class, if the rule matches it."""
        try:
            wrong = (w for w in self.tried([instance], (*KINDS, *OF_HALVES))[1] if w.exceeds)
        except SaturationError:
            return None
        return next(((w.seen, w.difference) for w in wrong), None)


def _size(wrong: Wrong) -> tuple[int, ...]:
    """A sort key: the amount of text in a counterexample."""
    instance = wrong.instance
    infos = [instance.info(v) for v in instance.problem.shapes if v in instance.problem.needed]
    shapes = [i.dims or () for i in infos]
    symbols = sum(not isinstance(d, int) for s in shapes for d in s)
    empty = sum(d == 0 for s in shapes for d in s)
    ranks = sum(map(len, shapes))
    odd = wrong.difference.kind != "ordinary"
    unusual = sum(i.dtype != "float32" for i in infos)
    return (
        odd,
        unusual,
        symbols,
        empty,
        ranks,
        sum(d for s in shapes for d in s if isinstance(d, int)),
    )
