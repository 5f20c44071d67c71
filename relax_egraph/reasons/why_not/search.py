"""The deepest partial matches of a rule in an e-graph: a backtracking join that may leave out.

Conjuncts are held against the rows one by one, those first whose arguments are known.  One that
has no row fails, and the search goes on without it; a node that is nearly there (operands in the
other order, another attribute, behind a broadcast) fails, too, but its operands are looked at.
The match of most nodes is best, then that of most premises; the work is bounded.
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
"""Conjuncts that are looked at for full matches of one rule in one e-graph at most.

For partial matches as many, too.
"""

_EACH = 4_000
"""Conjuncts that are looked at for one candidate at most."""

_DEEPEST = 5
"""So many rules that deduce for one another are followed."""

_REPAIRS = 2
"""So many nodes of a match may be nearly there."""


class Search:
    """Matches of rules of `book` in a `database`; `cut` says that some were not looked for."""

    def __init__(self, database: Database, book: Deductions) -> None:
        self.database, self.book = database, book
        self.cut = False
        self._whole = self._partial = STEPS
        self._derived: dict[tuple[str, tuple[tuple[int, Any], ...]], Partial | None] = {}
        self._weights: dict[str, int] = {}
        self._depth = 0

    def matches(self, plan: Plan, known: Values) -> Iterator[Values]:
        """The full matches of `plan` in which variables have the values that are `known`."""
        yield from self._matches(plan, known, plan.conjuncts)

    def best(self, plan: Plan, known: Values) -> Partial:
        """The deepest partial match in which variables have the values that are `known`."""
        attempt = _Attempt(self, plan)
        attempt.go(known, plan.conjuncts, (), (), (0, 0, 0))
        self._partial -= attempt.steps
        self.cut |= attempt.cut
        assert attempt.best is not None  # the first path is followed to its end
        return attempt.best

    def _matches(self, plan: Plan, values: Values, rest: tuple[Conjunct, ...]) -> Iterator[Values]:
        if not rest:
            yield values
            return
        self._whole -= 1
        if self._whole < 0:
            self.cut = True
            return
        chosen = self.chosen(plan, values, rest, loosely=True)
        if chosen is None:
            return
        others = tuple(c for c in rest if c is not chosen)
        for found in self.exact(chosen, values):
            yield from self._matches(plan, found, others)

    @property
    def is_over(self) -> bool:
        """Whether no more partial matches are to be looked for."""
        self.cut |= self._partial < 0
        return self._partial < 0

    def chosen(
        self, plan: Plan, values: Values, rest: Sequence[Conjunct], loosely: bool
    ) -> Conjunct | None:
        """Which conjunct to hold against the rows next; ``None`` if none is in reach.

        A number or text that is known tells what else is meant only `loosely`: where nothing has
        failed.
        """
        ranks = (self._rank(c, values, loosely) for c in rest)
        ranked = [(rank, k) for k, rank in enumerate(ranks) if rank]
        if ranked:
            return rest[min(ranked)[1]]
        groups = groups_of(plan)
        left = set(map(id, rest))
        entered = {groups[id(c)] for c in plan.conjuncts if id(c) not in left}
        given = {v for v, value in values.items() if isinstance(value, Key)}
        entered |= {groups[id(c)] for c in rest if c.variables & given}
        fresh = [c for c in rest if c.kind != "computed" and groups[id(c)] not in entered]
        return next((c for c in fresh if self.database.table(c.head)), next(iter(fresh), None))

    def _rank(self, c: Conjunct, values: Values, loosely: bool) -> int:
        """How soon `c` is looked at; 0 if nothing of it is known."""
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
        given = [values[v] for v in c.variables if v in values]
        if any(isinstance(v, Key | tuple) for v in given):
            return 4
        return 5 if given and loosely else 0

    def exact(self, c: Conjunct, values: Values) -> Iterator[Values]:
        """The ways in which `c` holds, as the values of variables then."""
        if c.kind == "computed" and all(a in values for a in c.args if isinstance(a, str)):
            try:
                found = self.computed(c, values)
            except Fails:
                return
            if c.result is None:
                if found is True or found is None:
                    yield values
                return
            bound = bind((c.result,), (found,), values)
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
        if c.head in _ORDERS:  # egglog's numbers are ordered, NaN behind all others
            args = [(a != a, 0.0 if a != a else a) for a in args]
        try:
            return compute(c.head, tuple(args))
        except (AttributeError, KeyError, SaturationError):
            # a dimension without text, a function of the e-graph, a function of the user that fails
            raise Fails from None

    def would(self, c: Conjunct, known: Mapping[int, Any]) -> Partial | None:
        """The best match of a rule that deduces `c`, whose places have the values `known`."""
        rules = self.book.deducing.get(c.head, ())
        if not rules or self._depth >= _DEEPEST:
            return None
        asked = (c.head, tuple(sorted(known.items(), key=lambda item: item[0])))
        if asked not in self._derived:
            self._derived[asked] = None  # a rule that needs what it deduces ends here
            self._depth += 1
            found = [
                self.best(plan_of(pattern), preset)
                for pattern, row in rules
                if (preset := preset_of(plan_of(pattern), row, known)) is not None
            ]
            self._depth -= 1
            self._derived[asked] = max(found, key=self._likely, default=None)
        return self._derived[asked]

    def _likely(self, found: Partial) -> tuple[bool, bool, tuple[int, int, int]]:
        """How likely it is that the rule of `found` should have matched."""
        left_out = found.plan.pattern.rule.name in self.book.left_out
        return found.matches, not left_out, found.weight

    def weight(self, head: str) -> int:
        """The most nodes that a rule matches in order to deduce `head`, and others for it."""
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
        held: tuple[Conjunct, ...],
        failures: tuple[Failure, ...],
        weight: tuple[int, int, int],
    ) -> None:
        """Extend a match that has `values` and is of `weight` by the conjuncts in `rest`.

        A weight is of nodes, of premises, and of failures with their sign, twice where nothing is
        near.
        """
        self.steps += 1
        if self.best is not None:
            most = sum(self._nodes(c) for c in rest)
            if (weight[0] + most, weight[1] + len(rest), weight[2]) <= self.best.weight:
                return
            self.cut |= self.steps > _EACH
            if self.cut:
                return
        c = self.search.chosen(self.plan, values, rest, not failures) if rest else None
        if c is None:
            if self.best is None or weight > self.best.weight:
                self.best = Partial(self.plan, values, held, failures, weight)
            return
        others = tuple(r for r in rest if r is not c)
        nodes, premises, missing = weight
        more = (nodes + self._nodes(c), premises + (c.kind != "node"), missing)
        found = False
        for extended in self.search.exact(c, values):
            found = True
            if self.cut:
                break
            self.go(extended, others, (*held, c), failures, more)
        less = (nodes, premises, missing - 2)
        if c.kind == "node" and sum(f.row is not None for f in failures) < _REPAIRS:
            for failure, extended in nearby(self.search.database, c, values, found):
                self.go(
                    extended, others, held, (*failures, failure), (nodes, premises, missing - 1)
                )
        if not found:
            failure = self._failure(c, values)
            if failure.would:
                gained = min(failure.would.weight[0], max(0, self._nodes(c) - 1))
                less = (nodes + gained, premises, missing - 2)
            self.go(values, others, held, (*failures, failure), less)

    def _nodes(self, c: Conjunct) -> int:
        return 1 if c.kind == "node" else self.search.weight(c.head) if c.kind == "fact" else 0

    def _failure(self, c: Conjunct, values: Values) -> Failure:
        known = known_places(c, values)
        if c.kind == "computed":
            return Failure(c, "false", known)
        if c.kind == "node":
            return Failure(c, "lacking" if len(c.places) - 1 in known else "unused", known)
        return Failure(c, "fact", known, would=self.search.would(c, known))
