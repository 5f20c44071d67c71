"""The deepest partial matches of a rule in an e-graph: a backtracking join that may skip conjuncts.

The join matches conjuncts with rows one by one, those with known arguments first.  A conjunct
without a row fails, and the search continues without it.  A near miss of a node (swapped operands,
another attribute, a broadcast between) fails, too, but the search continues at its operands.  The
best match has the most nodes, then the most premises.  The number of steps is bounded.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.database import Database
from relax_egraph.errors import SaturationError
from relax_egraph.reasons.why_not.deductions import Deductions, preset_of
from relax_egraph.reasons.why_not.nearby import nearby
from relax_egraph.reasons.why_not.partial import Failure, Partial
from relax_egraph.reasons.why_not.plan import (
    ENGINE,
    Conjunct,
    Plan,
    Values,
    bind,
    groups_of,
    known_places,
    plan_of,
)
from relax_egraph.verify.instances.primitives import Fails, compute

STEPS = 200_000
"""The most steps for full matches of one rule in one e-graph, and as many for partial matches."""

_EACH = 4_000
"""The most steps for one candidate."""

_DEEPEST = 5
"""The longest chain of rules that deduce premises for one another."""

_REPAIRS = 2
"""The most near misses in one match."""


class Search:
    """Matches of rules of `book` in a `database`; `cut` tells that the search ended early."""

    def __init__(self, database: Database, book: Deductions) -> None:
        self.database, self.book = database, book
        self.cut = False
        self._whole = self._partial = STEPS
        self._derived: dict[tuple[str, tuple[tuple[int, Any], ...]], Partial | None] = {}
        self._weights: dict[str, int] = {}
        self._depth = 0

    def matches(self, plan: Plan, known: Values) -> Iterator[Values]:
        """The full matches of `plan` that extend the `known` values of variables."""
        yield from self._matches(plan, known, plan.conjuncts)

    def best(self, plan: Plan, known: Values) -> Partial:
        """The deepest partial match of `plan` that extends the `known` values of variables."""
        attempt = _Attempt(self, plan)
        attempt.go(known, plan.conjuncts, (), (), (0, 0, 0))
        self._partial -= attempt.steps
        self.cut |= attempt.cut
        assert attempt.best is not None  # the first path always reaches its end
        return attempt.best

    def _matches(self, plan: Plan, values: Values, rest: tuple[Conjunct, ...]) -> Iterator[Values]:
        if not rest:
            yield values
            return
        self._whole -= 1
        if self._whole < 0:
            self.cut = True
            return
        conjunct = self.next_conjunct(plan, values, rest, loosely=True)
        if conjunct is None:
            return
        others = tuple(c for c in rest if c is not conjunct)
        for extended in self.exact(conjunct, values):
            yield from self._matches(plan, extended, others)

    @property
    def is_over(self) -> bool:
        """Whether the steps for partial matches are used up."""
        self.cut |= self._partial < 0
        return self._partial < 0

    def next_conjunct(
        self, plan: Plan, values: Values, rest: Sequence[Conjunct], loosely: bool
    ) -> Conjunct | None:
        """The conjunct to match next; ``None`` if no conjunct is in reach.

        A known number or text selects rows only `loosely`, as long as no conjunct has failed.
        """
        ranks = (self._rank(c, values, loosely) for c in rest)
        ranked = [(rank, k) for k, rank in enumerate(ranks) if rank]
        if ranked:
            return rest[min(ranked)[1]]
        groups = groups_of(plan)
        left = set(map(id, rest))
        entered = {groups[id(c)] for c in plan.conjuncts if id(c) not in left}
        classes = {v for v, value in values.items() if isinstance(value, Key)}
        entered |= {groups[id(c)] for c in rest if c.variables & classes}
        fresh = [c for c in rest if c.kind != "computed" and groups[id(c)] not in entered]
        return next((c for c in fresh if self.database.table(c.head)), next(iter(fresh), None))

    def _rank(self, c: Conjunct, values: Values, loosely: bool) -> int:
        """The rank of `c` in the order of the join, 1 first; 0 if none of its values is known."""
        complete = all(a in values for a in c.args if isinstance(a, str))
        if c.kind == "computed" and (complete or c.head not in _DESTRUCTED):
            return 1 if complete else 0
        if c.kind == "fact" and complete:
            return 2
        reached = c.result in values if isinstance(c.result, str) else False
        if c.kind == "node" and reached:
            return 3
        if c.head in ENGINE:
            return 0
        known = [values[v] for v in c.variables if v in values]
        if any(isinstance(v, Key | tuple) for v in known):
            return 4
        return 5 if known and loosely else 0

    def exact(self, c: Conjunct, values: Values) -> Iterator[Values]:
        """The values of variables, extended by each row or computation with which `c` holds."""
        if c.kind == "computed" and all(a in values for a in c.args if isinstance(a, str)):
            try:
                result = self.computed(c, values)
            except Fails:
                return
            if c.result is None:
                if result is True or result is None:
                    yield values
                return
            bound = bind((c.result,), (result,), values)
            if bound is not None:
                yield bound
            return
        if c.head not in self.book.declared and c.kind == "fact":
            yield values  # a primitive that only egglog knows
            return
        for row in self.database.where(c.head, known_places(c, values)):
            bound = bind(c.places, row, values)
            if bound is not None:
                yield bound

    def computed(self, c: Conjunct, values: Values) -> Any:
        """The value of a computation; raises `Fails`."""
        args: list[Any] = [values[a] if isinstance(a, str) else a.value for a in c.args]
        if c.head == "count-matches":
            return args[0].count(args[1])
        if c.head in _ORDERS:  # egglog orders all numbers, NaN last
            args = [(a != a, 0.0 if a != a else a) for a in args]
        try:
            return compute(c.head, tuple(args))
        except (AttributeError, KeyError, SaturationError):
            # a dimension without text, a function of the e-graph, a function of the user that fails
            raise Fails from None

    def would(self, c: Conjunct, known: Mapping[int, Any]) -> Partial | None:
        """The best match of a rule that would deduce `c` with the values `known`, by place."""
        rules = self.book.deducing.get(c.head, ())
        if not rules or self._depth >= _DEEPEST:
            return None
        fact = (c.head, tuple(sorted(known.items(), key=lambda item: item[0])))
        if fact not in self._derived:
            self._derived[fact] = None  # ends the recursion of a rule that needs its own conclusion
            self._depth += 1
            partials = [
                self.best(plan_of(pattern), preset)
                for pattern, row in rules
                if (preset := preset_of(plan_of(pattern), row, known)) is not None
            ]
            self._depth -= 1
            self._derived[fact] = max(partials, key=self._likelihood, default=None)
        return self._derived[fact]

    def _likelihood(self, partial: Partial) -> tuple[bool, bool, tuple[int, int, int]]:
        """A sort key: how likely the user expected the rule of `partial` to match."""
        left_out = partial.plan.pattern.rule.name in self.book.left_out
        return partial.matches, not left_out, partial.weight

    def weight(self, head: str) -> int:
        """The most nodes that rules match to deduce `head`, over chains of deductions."""
        if head not in self._weights:
            self._weights[head] = 0
            self._weights[head] = max(
                (
                    plan.nodes + sum(self.weight(c.head) for c in plan.conjuncts)
                    for pattern, _ in self.book.deducing.get(head, ())
                    for plan in (plan_of(pattern),)
                ),
                default=0,
            )
        return self._weights[head]


_ORDERS = ("<", "<=", ">", ">=")

_DESTRUCTED = ("DimSym", "Prim.dim", "Prim.number")


class _Attempt:
    """The search for the best match of one plan."""

    def __init__(self, search: Search, plan: Plan) -> None:
        self.search, self.plan = search, plan
        self.best: Partial | None = None
        self.cut = False
        self.steps = 0

    def go(
        self,
        values: Values,
        rest: tuple[Conjunct, ...],
        matched: tuple[Conjunct, ...],
        failures: tuple[Failure, ...],
        weight: tuple[int, int, int],
    ) -> None:
        """Extend a match with `values` and `weight` by the conjuncts in `rest`.

        A weight counts nodes, premises, and failures as a negative number; a failure without a near
        miss counts twice.
        """
        self.steps += 1
        if self.best is not None:
            most = sum(self._nodes(c) for c in rest)
            if (weight[0] + most, weight[1] + len(rest), weight[2]) <= self.best.weight:
                return
            self.cut |= self.steps > _EACH
            if self.cut:
                return
        c = self.search.next_conjunct(self.plan, values, rest, not failures) if rest else None
        if c is None:
            if self.best is None or weight > self.best.weight:
                self.best = Partial(self.plan, values, matched, failures, weight)
            return
        others = tuple(r for r in rest if r is not c)
        nodes, premises, missing = weight
        more = (nodes + self._nodes(c), premises + (c.kind != "node"), missing)
        is_exact = False
        for extended in self.search.exact(c, values):
            is_exact = True
            if self.cut:
                break
            self.go(extended, others, (*matched, c), failures, more)
        less = (nodes, premises, missing - 2)
        if c.kind == "node" and sum(f.row is not None for f in failures) < _REPAIRS:
            for failure, extended in nearby(self.search.database, c, values, is_exact):
                self.go(
                    extended, others, matched, (*failures, failure), (nodes, premises, missing - 1)
                )
        if not is_exact:
            failure = self._failure(c, values)
            if failure.would:
                gained = min(failure.would.weight[0], max(0, self._nodes(c) - 1))
                less = (nodes + gained, premises, missing - 2)
            self.go(values, others, matched, (*failures, failure), less)

    def _nodes(self, c: Conjunct) -> int:
        return 1 if c.kind == "node" else self.search.weight(c.head) if c.kind == "fact" else 0

    def _failure(self, c: Conjunct, values: Values) -> Failure:
        known = known_places(c, values)
        if c.kind == "computed":
            return Failure(c, "false", known)
        if c.kind == "node":
            return Failure(c, "lacking" if len(c.places) - 1 in known else "unused", known)
        return Failure(c, "fact", known, would=self.search.would(c, known))
