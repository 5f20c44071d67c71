"""One optimization, made again with only some of the rules that took part in it."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeAlias

from relax_egraph.base.parameters import function, optional
from relax_egraph.egraph.engine import Budget, Phase, RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import ProofError, SaturationError, nearest
from relax_egraph.ir.module import IRModule
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.optimize.prepare import book_for, prepare
from relax_egraph.optimize.run import run
from relax_egraph.optimize.session import Session, check_symbols
from relax_egraph.proof.prove import prove
from relax_egraph.reasons.no_block import NO_BLOCK
from relax_egraph.rules import Given, read

LIMITS: Mapping[str, Any] = {"budget": Budget(seconds=60.0), "time_limit": 60.0}
"""What an optimization may take if nothing else is said: tries that a clock cuts short, or the
solver's, differ by chance."""


Told: TypeAlias = Callable[[int, int], object]
"""Hears of each try before it begins: its number, and how many rules it has."""


TOLD = optional(function("a function of two numbers: of the try, and of its rules"))


def untold(number: int, rules: int) -> None:
    """What is done with a try if nobody listens."""


@dataclass(slots=True)
class Costs:
    """What the best programs cost that sets of rules find.

    A rule that matches nothing changes nothing: what some rules find, each part of them finds that
    has those which matched.  And more rules find no worse program.
    """

    _found: list[tuple[frozenset[str], frozenset[str], float]] = field(
        default_factory=list[tuple[frozenset[str], frozenset[str], float]]
    )

    def of(self, kept: frozenset[str]) -> float | None:
        """What the program of the rules `kept` costs, if that is known."""
        return next((f for most, least, f in self._found if least <= kept <= most), None)

    def bounds(self, kept: frozenset[str]) -> tuple[float, float]:
        """What it costs at least, and at most."""
        least = max((f for most, _, f in self._found if kept <= most), default=0.0)
        return least, min((f for _, least, f in self._found if least <= kept), default=inf)

    def add(self, kept: frozenset[str], matched: Iterable[str], cost: float) -> None:
        """The program that the rules `kept` find, of which these `matched`, has this `cost`."""
        self._found.append((kept, frozenset(matched) & kept, cost))


@dataclass(slots=True)
class Restricted:
    """The optimization of `module` in a `session`, in which rules of `book` may be left out.

    A try has the rules that it is asked for, and what is generated: lowering, and the deduction
    of facts.  Rules of the book that cannot match in the module are in no try.
    """

    module: IRModule
    session: Session
    book: Mapping[str, Rule]
    told: Told
    tries: int = 0
    _costs: Costs = field(default_factory=Costs)

    @staticmethod
    def of(
        module: IRModule, rules: Sequence[Given], options: Mapping[str, Any], told: Told | None
    ) -> "Restricted":
        """The optimization with the arguments of `optimize`; raises `RuleError`."""
        read_once = read(rules)
        session = Session((read_once,), **{**LIMITS, **options})
        check_symbols(module, session)
        prepared = prepare(module, session.tolerance)
        book = book_for(prepared, read_once, session.without, session.fast_math)
        return Restricted(module, session, {r.name: r for r in book.rewrites}, told or untold)

    def known(self, names: Iterable[str]) -> frozenset[str]:
        """The `names` of rules; raises ``ValueError`` for one that is in neither book nor files."""
        wanted = frozenset(names)
        if wanted - self.book.keys():  # rules that can say nothing of the module are not there
            every = RuleBook.default([read(self.session.rules)], fast_math=True, bounded=True)
            known = [rule.name for rule in every.rewrites]
            for name in sorted(wanted.difference(known)):
                said = f"no rule is named {name!r}", nearest(name, known)
                raise ValueError("; ".join(filter(None, said)))
        return wanted

    def whole(self) -> Explanation:
        """The optimization with all rules."""
        explanation = self._explained(self.book.keys())
        self._costs.add(frozenset(self.book), self.matched(explanation), explanation.cost)
        return explanation

    def explained(self, chosen: Iterable[str]) -> Explanation:
        """The optimization with the rules `chosen`; its plans are kept as all are."""
        kept = set(chosen)
        self.tries += 1
        self.told(self.tries, len(kept))
        return self._explained(kept)

    def cost(self, chosen: Iterable[str]) -> float:
        """The seconds that the best program costs which the rules `chosen` find; tried once."""
        kept = frozenset(chosen)
        known = self._costs.of(kept)
        return self._tried(kept) if known is None else known

    def buys(self, chosen: Iterable[str], cost: float) -> bool:
        """Whether the rules `chosen` find a program of at most this `cost`; tried if it must be."""
        kept = frozenset(chosen)
        least, most = self._costs.bounds(kept)
        return most <= cost or (least <= cost and self._tried(kept) <= cost)

    def _tried(self, kept: frozenset[str]) -> float:
        explanation = self.explained(kept)
        self._costs.add(kept, self.matched(explanation), explanation.cost)
        return explanation.cost

    def matched(self, explanation: Explanation) -> tuple[str, ...]:
        """The rules that matched in `explanation`, in the order of the book: kin are neighbours."""
        fired = explanation.rules.keys()
        return tuple(n for n, r in self.book.items() if not fired.isdisjoint(r.reported))

    def proven(self, explanation: Explanation) -> tuple[str, ...]:
        """Of the rules that matched, those that a proof of the result rests on, or else all."""
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
        """`phase` without the rulesets of which no rule is `kept`: those of users are not there."""
        empty = {r.ruleset for r in self.book.values()} - {self.book[n].ruleset for n in kept}
        return replace(phase, rulesets=tuple(r for r in phase.rulesets if r not in empty))
