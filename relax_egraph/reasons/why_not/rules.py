"""The rules of a run, and the reasons for which other rules are not in it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from relax_egraph import rules
from relax_egraph.egraph.engine import RuleBook, Schedule, check_schedule, default_schedule
from relax_egraph.egraph.rulebook.rule import Direction, Rule
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.reasons.why_not.deductions import Deductions
from relax_egraph.reasons.why_not.plan import plan_of


@dataclass(frozen=True)
class Rules:
    """The book of `every` rule, the book of the `run`, and the `schedule` of the run.

    `without` are the families and rules that the caller left out.
    """

    every: RuleBook
    run: RuleBook
    schedule: Schedule
    without: frozenset[str]

    @staticmethod
    def of(
        of_user: rules.Rules,
        without: Sequence[str],
        fast_math: bool,
        bounded: bool,
        operators: Collection[str],
        schedule: Schedule | None,
    ) -> "Rules":
        """The rules of a run with these arguments on a program of `operators`."""
        run = RuleBook.default([of_user], without, fast_math, bounded=bounded)
        run = run.for_operators(operators)
        phases = default_schedule(run) if schedule is None else check_schedule(schedule, run)
        every = RuleBook.default([of_user], fast_math=True, bounded=True)
        return Rules(every, run, phases, frozenset(without))

    def named(self, name: str) -> Rule:
        """The rule with the name `name`; raises ``ValueError``."""
        known = {reported: r for r in self.every.rules for reported in (r.name, *r.reported)}
        if name not in known:
            note = near(name, (r.name for r in self.every.rules))
            raise ValueError(f"no rule is named {name!r}" + f"; {note}" * bool(note))
        return known[name]

    @cached_property
    def book(self) -> Deductions:
        """The patterns of every rule."""
        patterns = tuple(p for r in self.every.rules for p in r.directions)
        left_out = frozenset(r.name for r in self.every.rules if self._left_out(r))
        return Deductions(patterns, frozenset(self.every.declarations), left_out)

    def until(self, rule: Rule) -> Schedule:
        """The phases up to the last one that runs `rule`."""
        runs = [k for k, phase in enumerate(self.schedule) if rule.ruleset in phase.rulesets]
        return self.schedule[: runs[-1] + 1] if runs else self.schedule

    def excluded(self, rule: Rule) -> str:
        """The reason for which `rule` is not in the run, as a clause; "" if it is in the run."""
        if why := self._left_out(rule):
            return why
        if rule.ruleset in rules.FACTS or self.absent(rule):
            return ""
        if not any(rule.ruleset in phase.rulesets for phase in self.schedule):
            return f"no phase of the schedule runs its family, {rule.ruleset}"
        return self._before_lowering(rule)

    def _left_out(self, rule: Rule) -> str:
        """The argument of the run that excludes `rule`, as a clause; "" if there is none."""
        if rule.name in self.without:
            return "it is left out by its name"
        if rule.ruleset in self.without:
            return f"its family, {rule.ruleset}, is left out"
        if rule.float_class in self.lacking:
            return f"it is {rule.float_class}, and used only with {self.lacking[rule.float_class]}"
        return ""

    @property
    def lacking(self) -> dict[str, str]:
        """The float classes that the run excludes, each with the option that admits it."""
        fast = {} if self.run.fast_math else {"fast": "fast_math"}
        return fast if self.run.bounded else {**fast, "bounded": "a tolerance"}

    def absent(self, rule: Rule) -> tuple[str, ...]:
        """The operators and relations that `rule` needs and neither program nor rules provide."""
        known: dict[str, frozenset[str]] = {}
        by_direction = [self._absent(pattern, known) for pattern in rule.directions]
        return tuple(sorted(min(by_direction, key=len)))

    def _absent(self, pattern: Direction, known: dict[str, frozenset[str]]) -> frozenset[str]:
        """The absent names for `pattern`; `known` caches those for relations."""
        absent = frozenset[str]()
        for c in plan_of(pattern).conjuncts:
            if c.head not in self.run.absent:
                continue
            if c.kind != "node" and c.head not in known:
                known[c.head] = frozenset()  # ends the recursion
                deducing = [p for p, _ in self.book.deducing.get(c.head, ())]
                for_rules = [names for p in deducing if (names := self._absent(p, known))]
                unknown = frozenset[str]() if deducing else frozenset((c.head,))
                known[c.head] = min(for_rules, key=len, default=unknown)
            absent |= {c.head} if c.kind == "node" else known[c.head]
        return absent

    def _before_lowering(self, rule: Rule) -> str:
        """A clause on a `rule` that matches kernels but runs before there are any; else ""."""
        heads = [c.head for p in rule.directions for c in plan_of(p).conjuncts]
        kernels = sorted({h for h in heads if h.startswith("K.")})
        phases = self.until(rule)
        if not kernels or any("lower" in phase.rulesets for phase in phases):
            return ""
        return (
            f"it matches kernels ({', '.join(kernels)}), which exist only after its phase, "
            f"{phases[-1].name}; it needs :ruleset fusion"
        )
