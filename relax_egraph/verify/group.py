"""A rule that equates values, tried together with those that deduce what it reads.

An instance counts for every rule that it was drawn by, and what is wrong with it is held against
those that have the largest share of what is wrong.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from relax_egraph.egraph.rulebook import RuleBook
from relax_egraph.egraph.trial import Trial, try_rule
from relax_egraph.errors import SaturationError
from relax_egraph.verify.classes import Difference
from relax_egraph.verify.compare import Wrong, compare, stated
from relax_egraph.verify.draw import Instance, draw_instance
from relax_egraph.verify.problem import Contradiction
from relax_egraph.verify.program import Program
from relax_egraph.verify.query import Pattern, signatures_of
from relax_egraph.verify.resolve import problem_of
from relax_egraph.verify.texts import helper_text, tried_text
from relax_egraph.verify.tolerance import ORDER
from relax_egraph.verify.unfold import makers_of, needed, unfold
from relax_egraph.verify.verdict import Counterexample, Verdict, silent

INSTANCES = 20
"""How many instances a rule has to match."""

_BATCHES = 6
_HOPELESS = 30
"""So many attempts in vain, and no instance of a rule is sought any more."""

_IN_VAIN = 40
"""So many instances of a rule that match nothing, and no more are sought."""

_TOGETHER, _FEW, _MANY = 30, 6, 10
"""So many instances are in one e-graph, few of a rule of many premises: their join grows fast."""


@dataclass(slots=True)
class Group:
    """A rule that equates values, and rules that deduce what it reads, by the `chains` to them.

    What was found stays when more is asked for.
    """

    book: RuleBook
    head: Pattern
    random: Random
    chains: dict[str, tuple[Pattern, ...]] = field(default_factory=dict[str, tuple[Pattern, ...]])
    refused: dict[str, Counter[str]] = field(
        default_factory=lambda: defaultdict[str, Counter[str]](Counter)
    )
    drawn: Counter[str] = field(default_factory=Counter[str])
    fired: list[Instance] = field(default_factory=list[Instance])
    wrong: list[Wrong] = field(default_factory=list[Wrong])
    hopeless: set[str] = field(default_factory=set[str])
    leaving: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    left: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])

    def verdicts(self, names: Sequence[str]) -> Iterator[Verdict]:
        """The verdicts on the rules `names` of the group."""
        try:
            for _ in range(_BATCHES):
                lacking = self.lacking(names)
                if not lacking:
                    break
                instances = list(self.draw(lacking, small=False))
                fired, wrong = self.tried(instances)
                self.fired += fired
                self.wrong += wrong
                self.hopeless |= {
                    n for n in self.chains if self.drawn[n] > _IN_VAIN and not self.count(n)
                }
                if any(w.exceeds for w in wrong):
                    break
        except SaturationError as problem:
            for name in names:
                yield replace(silent(self.chains[name][-1].rule, str(problem)), needs="unsound")
            return
        blamed = self.blamed()
        for name in names:
            yield self.verdict(name, self.chains[name], name in blamed)

    def lacking(self, names: Sequence[str]) -> list[str]:
        """Those of `names` that need more instances."""
        return [n for n in names if n not in self.hopeless and self.count(n) < INSTANCES]

    def count(self, name: str) -> int:
        """How many instances of the rule `name` have been matched."""
        return sum(self.uses(i, name) for i in self.fired)

    def uses(self, instance: Instance, name: str) -> bool:
        """Whether `instance` was drawn by the rule `name`."""
        return name == self.head.name or any(r.name == name for r in instance.rules)

    def draw(self, names: Sequence[str], small: bool) -> Iterator[Instance]:
        """Instances for each of `names`; each counts for all rules that it is drawn by."""
        lacking = {n: INSTANCES + 6 - self.count(n) for n in names}
        for name in names:
            vain, some = 0, 0
            while lacking[name] > 0 and vain < _HOPELESS:
                instance = self.attempt(self.chains[name], small)
                if instance is None:
                    vain += 1
                    continue
                vain, some = 0, some + 1
                for other in names:
                    lacking[other] -= self.uses(instance, other)
                self.drawn.update(n for n in names if self.uses(instance, n))
                yield instance
            if not some and lacking[name] > 0:
                self.hopeless.add(name)

    def attempt(self, chain: Sequence[Pattern], small: bool) -> Instance | None:
        """An instance of what the last of `chain` matches, if this attempt finds one."""
        makers, left, refused = makers_of(self.book), self.leave(), self.refused[chain[-1].name]
        try:
            unfolded = unfold(chain, makers, self.random, left)
            problem = problem_of(unfolded.query, signatures_of(self.book), self.random)
        except Contradiction as why:
            refused[str(why)] += 1
            return None
        instance = draw_instance(problem, unfolded.rules, self.random, refused, small)
        if instance is not None:
            self.left[id(instance)] = left
        return instance

    def leave(self) -> frozenset[str]:
        """Which walks are left to egglog: by preference what has worked."""
        if self.leaving and self.random.random() < 0.8:
            return self.random.choice(self.leaving)
        return frozenset(n for n in makers_of(self.book).walks if self.random.random() < 0.5)

    def tried(self, instances: Sequence[Instance]) -> tuple[list[Instance], list[Wrong]]:
        """Try the rule on `instances`; those that it matched, and what is wrong."""
        fired: list[Instance] = []
        wrong: list[Wrong] = []
        premises = len(self.head.facts)
        for some in batched(instances, _TOGETHER if premises < _MANY else _FEW):
            more = self.tried_together(some)
            fired += more[0]
            wrong += more[1]
        return fired, wrong

    def tried_together(self, instances: Sequence[Instance]) -> tuple[list[Instance], list[Wrong]]:
        """The same, in one e-graph."""
        program = Program(signatures_of(self.book))
        for instance in instances:
            program.add(instance)
        rule = self.head.rule
        helpers = [r for r in needed(rule, makers_of(self.book)) if r.name != rule.name]
        tried = tried_text(self.head, signatures_of(self.book))
        texts = [helper_text(r) for r in helpers]
        trial = try_rule(self.book, program.actions, tried, texts)
        return self.compared(program, trial)

    def compared(self, program: Program, trial: Trial) -> tuple[list[Instance], list[Wrong]]:
        """The instances that the trial matched, and what is wrong with it."""
        compared, wrong = compare(program, trial, self.random)
        of_step = {s.number: s.instance for s in program.steps}
        matched = {of_step[n] for n in trial.matched if n in of_step}
        if trial.conflict:
            at = min(matched, default=0)
            conflict = Difference("unsound", (), None, None, None, f"it {trial.conflict}")
            wrong.append(Wrong(program.instances[at], conflict))
            compared.add(at)
        fired = [program.instances[k] for k in sorted(matched & compared)]
        self.leaving += [self.left[id(i)] for i in fired]
        return fired, wrong

    def blamed(self) -> set[str]:
        """The rules that have the largest share of what is wrong."""
        bad = {id(w.instance) for w in self.wrong if w.exceeds}
        shares: dict[str, float] = {}
        for name in self.chains:
            mine = [i for i in self.fired if self.uses(i, name)]
            shares[name] = sum(id(i) in bad for i in mine) / len(mine) if mine else 0
        most = max(shares.values(), default=0)
        return {n for n, share in shares.items() if share and share >= most / 2} if bad else set()

    def verdict(self, name: str, chain: Sequence[Pattern], blamed: bool) -> Verdict:
        """The verdict on one rule of the group; it is sound unless it is `blamed`."""
        rule = chain[-1].rule
        mine = [i for i in self.fired if self.uses(i, name)]
        if not mine:
            return silent(rule, self.why(name))
        wrong = [w for w in self.wrong if self.uses(w.instance, name)]
        exceeding = [w for w in wrong if w.exceeds] if blamed else []
        within = [ORDER.index(w.difference.need) for w in wrong if not w.exceeds]
        needs = ORDER[min(max((0, *within)), ORDER.index(stated(rule)))]
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
        )

    def why(self, name: str) -> str:
        """Why the rule `name` has not matched."""
        if self.drawn[name]:
            return f"of {self.drawn[name]} instances that should match, egglog matched none"
        worst = self.refused[name].most_common(1)
        return f"no instance was found; mostly refused: {worst[0][0]}" if worst else "no instance"

    def smallest(self, name: str, wrong: Sequence[Wrong]) -> Counterexample:
        """The smallest instance, of those found and of some more, that needs the most."""
        every = list(wrong)
        for _ in range(2):
            drawn = [i for _ in range(60) if (i := self.attempt(self.chains[name], small=True))]
            every += self.tried(drawn)[1]
        mine = [w for w in every if w.exceeds and self.uses(w.instance, name)]
        most = max((w.difference.need for w in mine), key=ORDER.index)
        same = [w for w in mine if w.difference.need == most]
        least = min(same, key=_size)
        return Counterexample(self.chains[name][0], least.instance, least.difference)


def batched(items: Sequence[Instance], count: int) -> Iterator[Sequence[Instance]]:
    """`items` in runs of `count`."""
    for k in range(0, len(items), count):
        yield items[k : k + count]


def _size(wrong: Wrong) -> tuple[int, ...]:
    """How much there is to read in a counterexample."""
    instance = wrong.instance
    infos = [instance.info(v) for v in instance.problem.shapes if v in instance.problem.needed]
    shapes = [i.dims or () for i in infos]
    symbols = sum(not isinstance(d, int) for s in shapes for d in s)
    empty = sum(d == 0 for s in shapes for d in s)
    ranks = sum(map(len, shapes))
    odd = wrong.difference.kind != "ordinary"
    return odd, symbols, empty, ranks, sum(d for s in shapes for d in s if isinstance(d, int))
