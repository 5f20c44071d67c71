"""Which rules a run has, and why it does not have the others."""

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
    """`every` rule that there is, those of the `run`, and its `schedule`.

    `without` are the families and rules that the caller left out.
    """

    every: RuleBook
    run: RuleBook
    schedule: Schedule
    without: frozenset[str]

    @staticmethod
    def of(
        given: rules.Rules,
        without: Sequence[str],
        fast_math: bool,
        bounded: bool,
        operators: Collection[str],
        schedule: Schedule | None,
    ) -> "Rules":
        """The rules of a run on a program of `operators`, which is called so."""
        run = RuleBook.default([given], without, fast_math, bounded=bounded)
        run = run.for_operators(operators)
        phases = default_schedule(run) if schedule is None else check_schedule(schedule, run)
        every = RuleBook.default([given], fast_math=True, bounded=True)
        return Rules(every, run, phases, frozenset(without))

    def named(self, name: str) -> Rule:
        """The rule that is called `name`; raises ``ValueError``."""
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
        """The phases up to the last that runs `rule`: what comes later it never sees."""
        runs = [k for k, phase in enumerate(self.schedule) if rule.ruleset in phase.rulesets]
        return self.schedule[: runs[-1] + 1] if runs else self.schedule

    def excluded(self, rule: Rule) -> str:
        """Why `rule` is not in the run, as a sentence without its subject; "" if it is."""
        if why := self._left_out(rule):
            return why
        if rule.ruleset in rules.FACTS or self.absent(rule):
            return ""
        if not any(rule.ruleset in phase.rulesets for phase in self.schedule):
            return f"no phase of the schedule runs its family, {rule.ruleset}"
        return self._before_lowering(rule)

    def _left_out(self, rule: Rule) -> str:
        """Why `rule` is not among those that were asked for."""
        if rule.name in self.without:
            return "it is left out by its name"
        if rule.ruleset in self.without:
            return f"its family, {rule.ruleset}, is left out"
        if rule.float_class in self.lacking:
            return f"it is {rule.float_class}, and used only with {self.lacking[rule.float_class]}"
        return ""

    @property
    def lacking(self) -> dict[str, str]:
        """The float classes that are not used, and what would let them in."""
        fast = {} if self.run.fast_math else {"fast": "fast_math"}
        return fast if self.run.bounded else {**fast, "bounded": "a tolerance"}

    def absent(self, rule: Rule) -> tuple[str, ...]:
        """The operators and relations that `rule` needs, the program has not, and no rule makes."""
        known: dict[str, frozenset[str]] = {}
        found = [self._absent(pattern, known) for pattern in rule.directions]
        return tuple(sorted(min(found, key=len)))

    def _absent(self, pattern: Direction, known: dict[str, frozenset[str]]) -> frozenset[str]:
        """What is absent for `pattern`; `known` is that for relations, each looked at once."""
        found = frozenset[str]()
        for c in plan_of(pattern).conjuncts:
            if c.head not in self.run.absent:
                continue
            if c.kind != "node" and c.head not in known:
                known[c.head] = frozenset()  # ends the recursion
                deducing = [p for p, _ in self.book.deducing.get(c.head, ())]
                ways = [way for p in deducing if (way := self._absent(p, known))]
                unknown = frozenset[str]() if deducing else frozenset((c.head,))
                known[c.head] = min(ways, key=len, default=unknown)
            found |= {c.head} if c.kind == "node" else known[c.head]
        return found

    def _before_lowering(self, rule: Rule) -> str:
        """Why `rule` sees no kernel, if it matches some."""
        heads = [c.head for p in rule.directions for c in plan_of(p).conjuncts]
        kernels = sorted({h for h in heads if h.startswith("K.")})
        phases = self.until(rule)
        if not kernels or any("lower" in phase.rulesets for phase in phases):
            return ""
        return (
            f"it matches kernels ({', '.join(kernels)}), which are made only after its phase, "
            f"{phases[-1].name}; it needs :ruleset fusion"
        )
