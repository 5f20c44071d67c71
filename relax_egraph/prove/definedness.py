"""Whether both sides are NaN and infinite for the same operands, also where reductions are.

Elements without reductions are compared by `specials`.  Of others, each side has to read the
elements that the other reads, by the same choices, and to compute the same quotients, roots and
logarithms: then it is NaN where the other is.  Where reductions test floats, or operands may be
infinite, they have to be reductions of the same, and elements agree with these as numbers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from typing import TypeAlias

from relax_egraph.prove import reads, specials
from relax_egraph.prove.conditions import (
    Condition,
    Negation,
    Zero,
    mapped,
    names_in,
    polynomials_in,
)
from relax_egraph.prove.digits import replaced
from relax_egraph.prove.effort import QUERY, Effort
from relax_egraph.prove.equality import Equality, ranges, solution
from relax_egraph.prove.polynomial import ZERO, Index, Polynomial, variable, variables_in
from relax_egraph.prove.reads import Occurrence, is_test
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.specials import Assumptions
from relax_egraph.prove.sums import (
    Applied,
    Counted,
    Factor,
    Read,
    Sum,
    Term,
    names_of_factor,
    numbered,
    replaced_factor,
    replaced_sum,
)
from relax_egraph.prove.totality import Totality, not_empty

Choices: TypeAlias = list[tuple[Sum, bool]]
"""Truth values, each with whether it is true."""


@dataclass
class Definedness:
    """Compares special values under what `solver` and `given` assume."""

    solver: Solver
    effort: Effort
    given: Assumptions

    def differs(self, a: Sum, b: Sum, dtype: str) -> str:
        """Where two elements of `dtype`, as they are written, may differ; empty if nowhere.

        The `dtype` is ``number`` where an integer or a truth value is a number of the rule.
        """
        if a.key == b.key:
            return ""
        ours, theirs = list(reads.occurrences(a)), list(reads.occurrences(b))
        every = (*ours, *theirs)
        if not any(isinstance(o.factor, Applied) for o in every):
            return ""
        tests = dtype == "number" or any(is_test(o.factor) for o in every)
        if not (reads.has_reductions(a) or reads.has_reductions(b)):
            known = self.agree(a, b, dtype, valued=tests)
            differ = "differ" if known is False else "may differ"
            return "" if known else f"the sides {differ} where an operand is NaN, infinite or 0"
        reason = self.unlike(ours, theirs, tests)
        return "" if reason and self.agree(a, b, dtype, valued=tests) else reason

    def agree(self, a: Sum, b: Sum, dtype: str, *, valued: bool = False) -> bool | None:
        """`specials.agree`, as one question, with reductions as unknown numbers."""
        self.effort.spend(QUERY)
        return specials.agree(a, b, dtype, self.given, valued=valued)

    def unlike(self, ours: Sequence[Occurrence], theirs: Sequence[Occurrence], tests: bool) -> str:
        """Where elements that are not of equal reductions may differ; empty if nowhere."""
        if tests:
            return "the sides may differ where a comparison reads NaN or infinity"
        sides = ((theirs, ours), (ours, theirs))
        if self.infinite(ours) != self.infinite(theirs):
            return "the sides may differ where a reduction is of infinities"
        for mine, other in sides:
            known = self.partial(other)
            with self.solver.scope(_counts(known)):
                texts = {q.text for q in known}
                for p in (p for p in self.partial(mine) if p.text not in texts):
                    if not self.is_everywhere(self.without(q, p) for q in _as_plain(known, p)):
                        return f"only one side has {p.factor.key}, which may have no value"
        if self.quotients(ours) != self.quotients(theirs):
            return (
                "the sides may differ where a quotient or a function is infinite, and then summed"
            )
        for mine, other in sides:
            others = {o.text: o for o in other if o.name}.values()
            for r in {r.text: r for r in mine if r.name}.values():
                known_number = isinstance(r.factor, Applied) and self.is_finite(r)
                if not known_number and not self.is_read(r, others):
                    return f"only one side reads {r.name}, or reads it in a sum of nothing"
        return ""

    def is_finite(self, r: Occurrence) -> bool:
        """Whether what is read is assumed to be finite, but for NaN of an operand."""
        if isinstance(r.factor, Read):
            return self.given.finite
        return reads.is_finite(r.name, self.given.numbers, r.of)

    def infinite(self, side: Sequence[Occurrence]) -> Counter[tuple[str, frozenset[str], str]]:
        """How often an element reads what may be infinite, in which reductions.

        That is numbers of rules, and operands of exact ones: what is read as often cannot cancel.
        """
        return Counter((o.name, *o.times) for o in side if o.name and not self.is_finite(o))

    def partial(self, side: Sequence[Occurrence]) -> list[Occurrence]:
        """What may have no value, each within the sums and the choices around it, once."""
        return [*{o.text: o for o in self.every_partial(side)}.values()]

    def every_partial(self, side: Sequence[Occurrence]) -> Iterator[Occurrence]:
        """The same, as often as it is computed."""
        totality = Totality(self.solver, self.given.numbers, self.given.finite)
        for o in side:
            around = (*not_empty(o.binders), *ranges(o.binders), *o.where)
            with self.solver.scope(around):
                found = totality.partial(o.factor)
            yield from (replace(o, factor=f) for f in found)

    def quotients(self, side: Sequence[Occurrence]) -> Counter[tuple[str, frozenset[str], str]]:
        """How often an element computes what may be infinite of finite operands, and where.

        What is divided by a count that is 0 is a sum of nothing.
        """
        found = (o for o in self.every_partial(side) if _count_of(o) is None)
        return Counter((numbered(o.factor.key), *o.times) for o in found)

    def without(self, o: Occurrence, r: Occurrence) -> Choices | None:
        """The choices of `o` that are none of `r`, if it is what `r` is wherever that counts.

        A sum around `o` over variables that it does not depend on is not of nothing there.
        """
        equality = Equality(self.solver, [])
        for by in equality.bijections_of(_of_its_variables(o), _of_its_variables(r)):
            with self.solver.scope((*ranges(r.binders), *r.where)):
                if not equality.factors(replaced_factor(o.factor, by), r.factor):
                    continue
            choices = (self.left(o, r, more) for more in _placements(o, r, by))
            if (found := next((c for c in choices if c is not None), None)) is not None:
                return found
        return None

    def is_read(self, r: Occurrence, others: Iterable[Occurrence]) -> bool:
        """Whether `others` read what `r` does, wherever it counts."""
        alike = (o for o in _as_plain(others, r) if o.name == r.name)
        return self.is_everywhere(self.covered(o, r) for o in alike)

    def is_everywhere(self, several: Iterable[Choices | None]) -> bool:
        """Whether one of several is there by whatever choices: without any, or by both."""
        left: list[tuple[Sum, bool]] = []
        for choices in several:
            if choices is None or len(choices) > 1:
                continue
            if not choices or any(
                holds != choices[0][1] and self.is_equal(test, choices[0][0])
                for test, holds in left
            ):
                return True
            left += choices
        return False

    def is_equal(self, a: Sum, b: Sum) -> bool:
        """Whether two elements are computed alike."""
        return Equality(self.solver, []).sums(a, b)

    def covered(self, o: Occurrence, r: Occurrence) -> Choices | None:
        """The choices of `o` that are none of `r`, if it is of the element that `r` is of.

        That is for some values of the variables of sums around it, wherever `r` counts.
        """
        return next((x for by in _placements(o, r) if (x := self.left(o, r, by)) is not None), None)

    def left(self, o: Occurrence, r: Occurrence, by: Mapping[str, Polynomial]) -> Choices | None:
        """The same for these values of the variables."""
        known = (*ranges(r.binders), *r.where)
        texts = {c.key for c in known}
        inside = (mapped(c, lambda p: replaced(p, by)) for c in (*ranges(o.binders), *o.where))
        pairs = zip(_index(o.factor), _index(r.factor), strict=True)
        apart = [replaced(x, by) - y for x, y in pairs]
        if any(_varies(p, r) for p in apart):
            return None
        names = {b.name for b in r.binders}
        asked = [*map(Zero, apart), *(c for c in inside if c.key not in texts)]
        free = [c for c in asked if names.isdisjoint(names_in(c))]
        if not all(map(self.solver.holds, free)):
            return None
        with self.solver.scope(known):
            if not all(self.solver.holds(c) for c in asked if c not in free):
                return None
            choices = [(replaced_sum(test, by), holds) for test, holds in o.choices]
            return [
                (test, holds)
                for test, holds in choices
                if not any(holds == h and self.is_equal(test, t) for t, h in r.choices)
            ]


def _counts(known: Iterable[Occurrence]) -> Iterator[Condition]:
    """That extents by which an element is divided in any case are not 0: there it has no value."""
    for o in known:
        count = _count_of(o)
        if count is not None and not o.is_within:
            yield Negation(Zero(count))


def _count_of(o: Occurrence) -> Polynomial | None:
    """The product of extents that something is divided by."""
    match o.factor:
        case Applied("divisor", (Sum(factor=Counted(count)),)):
            return count
        case _:
            return None


def _as_plain(others: Iterable[Occurrence], r: Occurrence) -> Iterator[Occurrence]:
    """Those of `others` through which NaN comes if it comes through `r`."""
    return (o for o in others if r.tested or not o.tested)


def _of_its_variables(o: Occurrence) -> Term:
    """A factor over those variables of the sums around it that are in it."""
    names = names_of_factor(o.factor)
    return Term(Fraction(1), (o.factor,), tuple(b for b in o.binders if b.name in names))


def _varies(p: Polynomial, r: Occurrence) -> bool:
    """Whether a polynomial is not 0 for all values of the variables around `r`."""
    plain = all(isinstance(v, str | Index) for v in variables_in(p))
    return plain and not p.variables.isdisjoint(b.name for b in r.binders)


def _index(f: Factor) -> tuple[Polynomial, ...]:
    return f.index if isinstance(f, Read) else ()


NONE: Mapping[str, Polynomial] = {}

MOST_PLACEMENTS = 8
"""The most values that are tried for variables of sums that no index says."""


def _placements(
    o: Occurrence, r: Occurrence, known: Mapping[str, Polynomial] = NONE
) -> Iterator[Mapping[str, Polynomial]]:
    """Values for the variables of `o` for which it may be of the element that `r` is of.

    What no index says is a variable of the same range, the first position, or the first for which
    a condition holds.
    """
    by = dict(known)
    pairs = [*zip(_index(o.factor), _index(r.factor), strict=True)]
    while found := _found(pairs, {b.name for b in o.binders} - by.keys(), by):
        by.update(found)
    open_ = [b for b in o.binders if b.name not in by]
    alike = {b.extent.key: variable(b) for b in r.binders}
    values = [
        {p.key: p for p in (alike.get(b.extent.key, ZERO), ZERO, *_bounds(b.name, o.where))}
        for b in open_
    ]
    for chosen in islice(product(*(v.values() for v in values)), MOST_PLACEMENTS):
        yield by | {b.name: value for b, value in zip(open_, chosen, strict=True)}


def _found(
    pairs: Iterable[tuple[Polynomial, Polynomial]],
    names: Set[str],
    by: Mapping[str, Polynomial],
) -> Mapping[str, Polynomial]:
    """The value of one more variable, for which two indices are equal."""
    for x, y in ((replaced(x, by), y) for x, y in pairs):
        for name in sorted(names & x.variables):
            if (value := solution(x, y, name)) is not None:
                return {name: value}
    return {}


def _bounds(name: str, where: Iterable[Condition]) -> Iterator[Polynomial]:
    """The numbers that conditions say a variable is at least, or at most."""
    for p in (p for c in where for p in polynomials_in(c)):
        value = solution(p, ZERO, name)
        if value is not None and value.number is not None:
            yield value
