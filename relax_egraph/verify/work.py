"""The check of a rule book as independent units of work.

Each unit has its own random generator: the verdicts are the same in one process and in many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Literal, TypeAlias

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.generate import generated_rules
from relax_egraph.egraph.rulebook.rule import Direction, Rule
from relax_egraph.errors import SaturationError
from relax_egraph.verify.cases import Case
from relax_egraph.verify.failures.conditions import Conditions
from relax_egraph.verify.failures.dim_laws import is_of_dims, verdict_on_dims
from relax_egraph.verify.failures.prove import shapes_agree
from relax_egraph.verify.group import Group
from relax_egraph.verify.in_cases import InCase
from relax_egraph.verify.verdict import Verdict, silent

Stage: TypeAlias = Literal["near", "in cases", "far"]
"""The stages of the check: short chains to a rule that equates values, cases, and long chains."""

_PASSES = 6
"""The most draws of programs like that of a case."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An independent part of a check.

    `subject` is the pattern that equates values, or the family for a trial in cases.  `chains` are
    names of patterns, from the subject to the pattern of the rule under test.  `known` are earlier
    verdicts on these rules.  A wrong instance with a `doubted` rule is no evidence against others.
    Instances are drawn with the `seed`.
    """

    stage: Stage
    subject: str
    chains: tuple[tuple[str, ...], ...] = ()
    known: tuple[Verdict, ...] = ()
    doubted: frozenset[str] = frozenset()
    seed: int = 0

    def parts(self) -> tuple["Unit", ...]:
        """Units of one rule each, to isolate the rule that stopped this unit."""
        if self.stage == "in cases":
            return tuple(replace(self, known=(verdict,)) for verdict in self.known)
        return tuple(replace(self, chains=(chain,)) for chain in self.chains)


@dataclass(frozen=True)
class Work:
    """The input of a check: a rule book, cases of file tests, and the number of trials.

    `functions` are those that rules call below the graph, pickled for workers.
    """

    book: RuleBook
    cases: tuple[Case, ...] = ()
    trials: int = 20
    functions: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @cached_property
    def patterns(self) -> Mapping[str, Direction]:
        """Both directions of all rules, by name."""
        rules = (*self.book.rules, *generated_rules())
        return {pattern.name: pattern for rule in rules for pattern in rule.directions}

    @cached_property
    def rules(self) -> Mapping[str, Rule]:
        """All rules by name."""
        return {pattern.rule.name: pattern.rule for pattern in self.patterns.values()}

    def rules_of(self, unit: Unit) -> tuple[str, ...]:
        """The rules of the verdicts of `unit`, one by one."""
        known = tuple(v.rule for v in unit.known)
        return known or tuple(self.patterns[chain[-1]].rule.name for chain in unit.chains)

    def do(self, unit: Unit) -> tuple[Verdict, ...]:
        """Run `unit` and return its verdicts."""
        with self.book.operators.in_force():
            return self._done(unit)

    def _done(self, unit: Unit) -> tuple[Verdict, ...]:
        if unit.stage == "in cases":
            return self.tried_in_cases(unit)
        if is_of_dims(self.patterns[unit.subject]):
            return (verdict_on_dims(self.patterns[unit.subject], self.trials),)
        random = Random(f"{unit.seed} {unit.stage} {unit.subject}")
        group = Group(self.book, self.patterns[unit.subject], random, self.trials, unit.doubted)
        for chain in unit.chains:
            group.chains[chain[-1]] = tuple(self.patterns[name] for name in chain)
        verdicts = tuple(group.verdicts())
        chains = tuple(group.chains.values())
        return tuple(
            self.refined(verdict, group, unit.seed) if len(chain) == 1 else verdict
            for verdict, chain in zip(verdicts, chains, strict=True)
        )

    def refined(self, verdict: Verdict, group: Group, seed: int) -> Verdict:
        """`verdict` on the head of `group` with a proof of shapes, or with a missing premise."""
        if verdict.sound:
            return replace(verdict, proved=shapes_agree(group.head, group.fired))
        if verdict.kind != "unsound" or verdict.counterexample is None:
            return verdict
        random = Random(f"{seed} conditions of {group.head.name}")
        guard = Conditions(self.book, group.head, random, self.trials).missing()
        return replace(verdict, guard=guard)

    def lost(self, unit: Unit, why: str) -> tuple[Verdict, ...]:
        """The verdicts of a unit of one rule that did not end, for the reason `why`."""
        rules = [self.patterns[chain[-1]].rule for chain in unit.chains]
        known = unit.known or tuple(silent(rule, why) for rule in rules)
        return tuple(replace(verdict, cut=why) for verdict in known)

    def tried_in_cases(self, unit: Unit) -> tuple[Verdict, ...]:
        """The known verdicts of `unit`, extended by trials on programs like those of the cases."""
        verdicts = {v.rule: v for v in unit.known}
        for number, case in enumerate(self.cases):
            for time in range(_PASSES):
                lacking = [
                    n for n in sorted(case.fires) if n in verdicts and self.lacks(verdicts[n])
                ]
                random = Random(f"{unit.seed} {unit.subject} {number} {time}")
                try:
                    trial = self.in_case(case, lacking, random) if lacking else None
                except SaturationError as problem:
                    for name in lacking:
                        verdicts[name] = replace(
                            verdicts[name], needs="unsound", reason=str(problem)
                        )
                    break
                if trial is None:
                    break
                for name in lacking:
                    verdicts[name] = trial.added_to(verdicts[name])
        return tuple(verdicts.values())

    def in_case(self, case: Case, wanted: Sequence[str], random: Random) -> InCase | None:
        """A trial of the rules `wanted` on programs like that of `case`."""
        return InCase.of(self.book, case, wanted, random, self.trials)

    def lacks(self, verdict: Verdict) -> bool:
        """Whether a rule needs more instances for a verdict."""
        return verdict.fired < self.trials and verdict.needs != "unsound"
