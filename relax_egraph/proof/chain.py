"""Linearization of an explanation: a chain of single rule applications between two programs.

An explanation is a tree: before a rule applies, operands of the term must be rewritten to the
terms that the rule matched.  The walk is from the root, so that a shared term is rewritten once: a
place is a pair of the current term and its goal, and all positions with the same pair are one
place.
"""

import heapq
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import TypeAlias, cast

from relax_egraph.errors import ProofError
from relax_egraph.proof.deduced import closure
from relax_egraph.proof.forest import Forest
from relax_egraph.proof.paths import Deduced, Edge, Pairs
from relax_egraph.proof.term import Operand, Term, Terms
from relax_egraph.proof.trace import Deduction, Step


def chain(
    forest: Forest, terms: Terms, source: Term, target: Term, before: float = inf
) -> tuple[Step, ...]:
    """The steps from `source` to `target`, over equations of `forest` from times before `before`.

    Raises `ProofError` if there are none.
    """
    forest.add(source)
    forest.add(target)
    if not forest.equal(source, target):
        raise ProofError("the terms are not known to be equal")
    return _Chain(forest, terms, _Place(source, target, before)).steps()


@dataclass(slots=True, eq=False)
class _Place:
    """All positions of `term`, which is to be rewritten to `goal` by edges of times `before`.

    `path` has the edges that remain.  While operands are rewritten, `parts` are the operands, with
    places among them, and `waiting` is the number of unfinished places; `users` are the places
    that have this one as a part.
    """

    term: Term
    goal: Term
    before: float
    path: list[Edge] | None = None
    parts: "tuple[_Part | tuple[_Part, ...], ...] | None" = None
    waiting: int = 0
    users: "list[_Place]" = field(default_factory=list["_Place"])


_Part: TypeAlias = "Operand | _Place"


class _Chain:
    """The construction of a chain; `_fresh` has the places that are not rewritten yet."""

    def __init__(self, forest: Forest, terms: Terms, root: _Place) -> None:
        self._forest, self._terms, self._root = forest, terms, root
        self._order = count()
        self._queue: list[tuple[int, int, _Place]] = []
        self._fresh: dict[tuple[Term, Term], _Place] = {}
        self._steps: list[Step] = []
        self._deductions: dict[Deduced, Deduction] = {}
        self._program = root.term
        self._passed = [root.term]
        self._programs = {root.term: 0}

    def steps(self) -> tuple[Step, ...]:
        self._push(self._root)
        while self._queue:
            *_, place = heapq.heappop(self._queue)
            self._fresh.pop((place.term, place.goal), None)
            self._go_on(place)
        assert self._program is self._root.goal
        return tuple(self._steps)

    def _push(self, place: _Place) -> None:
        """Queue `place`; high terms come first, as lower terms are their parts."""
        height = self._terms.height(place.term)
        heapq.heappush(self._queue, (-height, next(self._order), place))

    def _go_on(self, place: _Place) -> None:
        """Rewrite `place` to its goal, or until parts of it must be rewritten first."""
        if place.path is None:
            path = self._forest.path(place.term, place.goal, place.before)
            assert path is not None, "a congruence holds by what was before it"
            place.path = path[::-1]
        while place.path:
            edge = place.path.pop()
            if edge.rule:
                self._apply(place, edge)
            else:
                time = edge.time
                while place.path and not place.path[-1].rule:
                    edge = place.path.pop()
                    time = max(time, edge.time)
                if self._begin_parts(place, edge.right, time):
                    return
        for user in place.users:
            user.waiting -= 1
            if not user.waiting:
                self._push(user)
                user.parts = None

    def _begin_parts(self, place: _Place, goal: Term, before: float) -> bool:
        """Queue the parts of `place` that differ from `goal`; whether there are any."""
        waiting: set[_Place] = set()

        def part(now: Operand, then: Operand) -> _Part:
            if not isinstance(now, Term) or not isinstance(then, Term) or now is then:
                return now
            inner = self._fresh.get((now, then))
            if inner is None:
                inner = _Place(now, then, before)
                self._fresh[now, then] = inner
                self._push(inner)
            inner.before = min(inner.before, before)
            if inner not in waiting:
                waiting.add(inner)
                inner.users.append(place)
            return inner

        def parts(now: Operand, then: Operand) -> "_Part | tuple[_Part, ...]":
            if isinstance(now, tuple) and isinstance(then, tuple):
                return tuple(part(a, b) for a, b in zip(now, then, strict=True))
            return part(now, then)

        pairs = zip(place.term.children, goal.children, strict=True)
        place.parts = tuple(parts(a, b) for a, b in pairs)
        place.waiting = len(waiting)
        return bool(waiting)

    def _apply(self, place: _Place, edge: Edge) -> None:
        """Add a step at all positions of `place`.

        If its term must stay at other positions, the steps are on the terms around it instead.
        """
        old = {above: above.term for above in self._above(place)}
        place.term = edge.right
        for above in old:
            if above.parts is not None:
                above.term = self._terms.over(above.term, map(_now, above.parts))
        premises = self._premises(edge.given, edge.time)
        deduced = tuple(map(self._deduction, closure(edge.deduced)))
        level = [place]
        while True:
            steps: list[tuple[Step, Term]] = []
            program = self._program
            for changed in level:
                step = Step(
                    edge.rule, old[changed], changed.term, edge.backwards, premises, deduced
                )
                then = self._terms.replaced(program, step.before, step.after)
                if then is not program:
                    steps.append((step, then))
                program = then
            if program is self._root.term:
                break
            above = dict.fromkeys(user for changed in level for user in changed.users)
            level = list(above) if self._root not in level else [self._root]
        for step, program in steps:
            self._add(step, program)

    def _premises(self, pairs: Pairs, before: float) -> tuple[Step, ...]:
        """The steps that prove each of `pairs` equal."""
        chains = (chain(self._forest, self._terms, a, b, before) for a, b in pairs)
        return tuple(step for steps in chains for step in steps)

    def _deduction(self, of: Deduced) -> Deduction:
        if of not in self._deductions:
            premises = self._premises(of.given, of.time)
            self._deductions[of] = Deduction(of.rule, of.name, of.row, premises)
        return self._deductions[of]

    def _add(self, step: Step, program: Term) -> None:
        """Add a step that leads to `program`; a cycle back to an earlier program is removed."""
        self._program = program
        if program in self._programs:
            length = self._programs[program]
            for later in self._passed[length + 1 :]:
                del self._programs[later]
            del self._passed[length + 1 :], self._steps[length:]
        else:
            self._steps.append(step)
            self._programs[program] = len(self._steps)
            self._passed.append(program)

    def _above(self, place: _Place) -> list[_Place]:
        """`place` and its transitive users, in ascending order of height."""
        above, todo = {place: None}, [place]
        while todo:
            new = [user for user in todo.pop().users if user not in above]
            above.update(dict.fromkeys(new))
            todo += new
        return sorted(above, key=lambda p: self._terms.height(p.term))


def _now(part: "_Part | tuple[_Part, ...]") -> Operand:
    """The current operand at a part."""
    if isinstance(part, tuple):
        return tuple(cast(Term, _now(p)) for p in part)
    return part.term if isinstance(part, _Place) else part
