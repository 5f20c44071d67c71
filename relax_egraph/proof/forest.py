"""Proof-producing congruence closure of terms, over instances of rules.

Congruence closure is by union-find and a table of signatures (Downey, Sethi and Tarjan 1980).
Every equation and every congruence is an edge between two terms, with a time; a congruence follows
from earlier edges (Nieuwenhuis and Oliveras, Proof-producing congruence closure, 2005).  An
explanation is a short path over all edges, not only over the spanning tree of edges that joined
classes (Flatt et al., Small proofs from congruence closure, 2022).
"""

from collections import defaultdict
from collections.abc import Hashable
from math import inf

from relax_egraph.proof.paths import Deduced, Edge, Pairs, Paths
from relax_egraph.proof.term import Term, head_of


class Forest:
    """Terms of one table, and the equations between them."""

    def __init__(self) -> None:
        self._parent: dict[Term, Term] = {}
        self._heads: dict[Hashable, int] = {}
        self._head: dict[Term, int] = {}
        self._ages: dict[Term, int] = {}
        self._oldest: dict[Term, Term] = {}
        self._equals: dict[Term, list[Term]] = {}
        self._users: dict[Term, list[Term]] = defaultdict(list)
        self._congruent: dict[Hashable, Term] = {}
        self._edges: dict[Term, list[Edge]] = defaultdict(list)
        self._linked: set[tuple[Term, Term, str]] = set()
        self._clock = 1
        self._paths = Paths(self._edges)

    def __contains__(self, term: Term) -> bool:
        return term in self._parent

    def add(self, term: Term) -> int:
        """Add `term` and its subterms; returns how many are not congruent to an earlier term."""
        new = 0
        stack = [(term, False)]
        while stack:
            inner, ready = stack.pop()
            if inner in self._parent:
                continue
            if ready:
                new += self._insert(inner)
            else:
                stack.append((inner, True))
                stack.extend((child, False) for child in inner.operands)
        return new

    @property
    def clock(self) -> int:
        """The time of the next edge."""
        return self._clock

    def unite(
        self,
        left: Term,
        right: Term,
        rule: str,
        given: Pairs = (),
        deduced: tuple[Deduced, ...] = (),
    ) -> None:
        """Equate `left` and `right` by `rule`; new terms are added.

        The premises of the rule are the equations `given`, and the rows `deduced`.
        """
        for term in (left, right, *(term for pair in given for term in pair)):
            self.add(term)
        if left is not right:
            self._join([(left, right, rule)], given, deduced)

    def equal(self, left: Term, right: Term) -> bool:
        """Whether two added terms are equal."""
        return self._find(left) is self._find(right)

    def oldest(self, term: Term) -> Term:
        """The term that was added first, of all terms that are equal to the added term `term`."""
        return self._oldest[self._find(term)]

    def equals(self, term: Term) -> list[Term]:
        """All terms that are equal to the added term `term`, in the order of their addition."""
        return sorted(self._equals[self._find(term)], key=self._ages.__getitem__)

    def path(self, left: Term, right: Term, before: float = inf) -> list[Edge] | None:
        """A path from `left` to `right` over edges of times `before`; ``None`` without one."""
        return self._paths.shortest(left, right, min(before, self._clock))

    def _insert(self, term: Term) -> bool:
        head = head_of(term)
        self._head[term] = self._heads.setdefault(head, len(self._heads))
        self._parent[term] = term
        self._ages[term] = len(self._ages)
        self._oldest[term] = term
        self._equals[term] = [term]
        for child in dict.fromkeys(map(self._find, term.operands)):
            self._users[child].append(term)
        known = self._congruent.setdefault(self._signature(term), term)
        if known is term:
            return True
        self._join([(known, term, "")])
        return False

    def _join(
        self,
        waiting: list[tuple[Term, Term, str]],
        given: Pairs = (),
        deduced: tuple[Deduced, ...] = (),
    ) -> None:
        """Add edges and the congruences that follow; the premises belong to the first edge."""
        while waiting:
            left, right, rule = waiting.pop()
            if (left, right, rule) in self._linked:
                continue
            self._linked.add((left, right, rule))
            one, other = self._find(left), self._find(right)
            edge = Edge(left, right, rule, self._clock, given, deduced)
            given, deduced = (), ()
            self._clock += 1
            self._edges[left].append(edge)
            self._edges[right].append(edge.reversed)
            if one is other:
                continue
            if len(self._users[one]) > len(self._users[other]):
                one, other = other, one
            self._parent[one] = other
            self._oldest[other] = min(
                self._oldest.pop(one), self._oldest[other], key=self._ages.__getitem__
            )
            self._equals[other] += self._equals.pop(one)
            users = self._users.pop(one)
            self._users[other] += users
            for user in users:
                known = self._congruent.setdefault(self._signature(user), user)
                if known is not user:
                    waiting.append((known, user, ""))

    def _signature(self, term: Term) -> Hashable:
        return self._head[term], term.over(self._find).children

    def _find(self, term: Term) -> Term:
        root = term
        while (above := self._parent[root]) is not root:
            root = above
        while (above := self._parent[term]) is not root:
            self._parent[term], term = root, above
        return root
