"""Repeats of one optimization with a subset of its rules."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Protocol

from relax_egraph.egraph.engine import Budget, Phase, RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import ProofError, SaturationError, nearest
from relax_egraph.ir.called import operators_for
from relax_egraph.ir.module import IRModule
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.optimize.prepare import book_for, prepare
from relax_egraph.optimize.run import run
from relax_egraph.optimize.session import Session, check_symbols
from relax_egraph.proof.prove import prove
from relax_egraph.reasons.no_block import NO_BLOCK
from relax_egraph.reasons.progress import Progress
from relax_egraph.rules import Given, read

LIMITS: Mapping[str, Any] = {"budget": Budget(seconds=60.0), "time_limit": 60.0}
"""Default limits of a try.  They are generous: tries that a clock cuts short differ by chance."""


@dataclass(slots=True)
class Costs:
    """The costs of the best programs by set of rules.

    A rule that does not match changes nothing: a subset that contains all rules that matched finds
    the same program.  More rules find no worse program.
    """

    _known: list[tuple[frozenset[str], frozenset[str], float]] = field(
        default_factory=list[tuple[frozenset[str], frozenset[str], float]]
    )

    def of(self, kept: frozenset[str]) -> float | None:
        """The cost of the best program with the rules `kept`, if it is known."""
        return next((cost for most, least, cost in self._known if least <= kept <= most), None)

    def bounds(self, kept: frozenset[str]) -> tuple[float, float]:
        """A lower and an upper bound of the cost of the best program with the rules `kept`."""
        lower = max((cost for most, _, cost in self._known if kept <= most), default=0.0)
        return lower, min((cost for _, least, cost in self._known if least <= kept), default=inf)

    def add(self, kept: frozenset[str], matched: Iterable[str], cost: float) -> None:
        """Record the `cost` of the best program with the rules `kept`, where these `matched`."""
        self._known.append((kept, frozenset(matched) & kept, cost))


class Elsewhere(Protocol):
    """Where tries may run other than in this process."""

    def measured(self, kept: frozenset[str]) -> tuple[float, Sequence[str]]:
        """What `Restricted.measured` returns."""
        ...

    def expect(self, sets: Iterable[frozenset[str]]) -> None:
        """Begin with sets of rules that may be tried next, as far as that costs no time."""
        ...


@dataclass(slots=True)
class Restricted:
    """The optimization of `module` in a `session`, repeated without some rules of `book`.

    Each try also has the generated rules: lowering, and the deduction of facts.  `book` lacks the
    rules that cannot match in the module.  Costs are measured `elsewhere` if that is known.
    """

    module: IRModule
    session: Session
    book: Mapping[str, Rule]
    progress: Progress
    tries: int = 0
    elsewhere: Elsewhere | None = None
    _costs: Costs = field(default_factory=Costs)

    @staticmethod
    def of(
        module: IRModule,
        rules: Sequence[Given],
        options: Mapping[str, Any],
        progress: Progress,
    ) -> "Restricted":
        """The optimization with arguments of `optimize`; raises `RuleError`."""
        read_once = read(rules)
        session = Session((read_once,), **{**LIMITS, **options})
        check_symbols(module, session)
        prepared = prepare(module, session).module
        with operators_for(module).in_force():
            book = book_for(prepared, session.read_rules(), session.without, session.fast_math)
        by_name = {rule.name: rule for rule in book.rewrites}
        return Restricted(module, session, by_name, progress)

    def known(self, names: Iterable[str]) -> frozenset[str]:
        """The set of `names`; raises ``ValueError`` for a name that no rule has."""
        wanted = frozenset(names)
        if wanted - self.book.keys():  # `book` lacks rules that cannot match in the module
            every = RuleBook.default([self.session.read_rules()], fast_math=True, bounded=True)
            known = [rule.name for rule in every.rewrites]
            for name in sorted(wanted.difference(known)):
                message = f"no rule is named {name!r}", nearest(name, known)
                raise ValueError("; ".join(filter(None, message)))
        return wanted

    def whole(self) -> Explanation:
        """The optimization with all rules."""
        explanation = self._explained(self.book.keys())
        self._costs.add(frozenset(self.book), self.matched(explanation), explanation.cost)
        return explanation

    def explained(self, chosen: Iterable[str]) -> Explanation:
        """The optimization with the rules `chosen`."""
        kept = set(chosen)
        self._count(kept)
        return self._explained(kept)

    def measured(self, kept: Set[str]) -> tuple[float, Sequence[str]]:
        """The cost of the best program with the rules `kept`, and those of them that matched."""
        explanation = self._explained(kept)
        return explanation.cost, self.matched(explanation)

    def cost(self, chosen: Iterable[str]) -> float:
        """The cost of the best program with the rules `chosen`, in seconds; tried unless known."""
        kept = frozenset(chosen)
        known = self._costs.of(kept)
        return self._tried(kept) if known is None else known

    def reaches(self, chosen: Iterable[str], cost: float) -> bool:
        """Whether the rules `chosen` find a program of at most `cost`; tried only if necessary."""
        kept = frozenset(chosen)
        lower, upper = self._costs.bounds(kept)
        return upper <= cost or (lower <= cost and self._tried(kept) <= cost)

    def cost_anew(self, chosen: Iterable[str]) -> float:
        """The cost of the best program with the rules `chosen`, tried even if it is bounded."""
        return self._tried(frozenset(chosen))

    def expect_costs(self, sets: Iterable[Iterable[str]]) -> None:
        """Say that `cost` is asked for each of `sets` next."""
        if self.elsewhere is not None:
            every = map(frozenset[str], sets)
            self.elsewhere.expect(kept for kept in every if self._costs.of(kept) is None)

    def expect_to_reach(self, sets: Iterable[Iterable[str]], cost: float) -> None:
        """Say that `reaches` may be asked for each of `sets` next."""
        if self.elsewhere is not None:
            every = map(frozenset[str], sets)
            self.elsewhere.expect(kept for kept in every if self._is_open(kept, cost))

    def _is_open(self, kept: frozenset[str], cost: float) -> bool:
        lower, upper = self._costs.bounds(kept)
        return lower <= cost < upper

    def _tried(self, kept: frozenset[str]) -> float:
        self._count(kept)
        cost, matched = (self.elsewhere or self).measured(kept)
        self._costs.add(kept, matched, cost)
        return cost

    def _count(self, kept: Set[str]) -> None:
        self.tries += 1
        self.progress(self.tries, len(kept))

    def matched(self, explanation: Explanation) -> tuple[str, ...]:
        """The rules that matched in `explanation`, in the order of the book."""
        fired = explanation.rules.keys()
        return tuple(n for n, r in self.book.items() if not fired.isdisjoint(r.reported))

    def proven(self, explanation: Explanation) -> tuple[str, ...]:
        """The rules in a proof of the result; all that matched if there is no proof."""
        matched = self.matched(explanation)
        try:
            proofs = [prove(r, [""] * len(r.view.roots)) for r in explanation.regions]
        except (ProofError, SaturationError):
            return matched
        used = {name for p in proofs for trace in p.traces for name in trace.written}
        return tuple(name for name in matched if name in used)

    def _explained(self, kept: Set[str]) -> Explanation:
        session = replace(
            self.session, without=(*self.session.without, *sorted(self.book.keys() - kept))
        )
        if session.schedule:
            phases = tuple(self._without_empty(phase, kept) for phase in session.schedule)
            session = replace(session, schedule=phases)
        explanation = run(self.module, session)
        if not explanation.regions:
            raise ValueError(NO_BLOCK)
        return explanation

    def _without_empty(self, phase: Phase, kept: Set[str]) -> Phase:
        """`phase` without rulesets that lose all rules: egglog knows no empty ruleset of a user."""
        empty = {r.ruleset for r in self.book.values()} - {self.book[n].ruleset for n in kept}
        return replace(phase, rulesets=tuple(r for r in phase.rulesets if r not in empty))
