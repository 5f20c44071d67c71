"""Whether two sums of products are equal: term by term, up to a bijection of their variables.

A bijection is affine: each variable of one term is plus or minus a variable of the other, and what
is free in both.  It maps the range and the conditions of one term to those of the other, both ways.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from relax_egraph.prove.conditions import (
    Condition,
    Nonnegative,
    Zero,
    every,
    mapped,
    negated,
)
from relax_egraph.prove.digits import position_of, replaced
from relax_egraph.prove.joining import joined
from relax_egraph.prove.points import without_points
from relax_egraph.prove.polynomial import Index, Polynomial, variable
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.sums import (
    Applied,
    Counted,
    Factor,
    Folded,
    Read,
    Sum,
    Term,
    add,
    factors_in,
    names_of_term,
    replaced_factor,
    scale,
)

COMMUTATIVE = frozenset(("max", "min", "and", "or", "==", "!=", "bitwise_and", "bitwise_or"))

MOST_BIJECTIONS = 48
"""The most bijections that are tried for two terms."""


@dataclass
class Equality:
    """Compares under what `solver` assumes; `bijections` are those that proofs used."""

    solver: Solver
    bijections: list[str]

    def sums(self, a: Sum, b: Sum) -> bool:
        """Whether two sums are proven equal."""
        return a.key == b.key or not self.difference(a, b).terms

    def difference(self, a: Sum, b: Sum) -> Sum:
        """What is left of ``a - b`` when terms that cancel are taken away."""
        left = self.uncancelled(without_points(add(a, scale(b, -1))))
        rest = self.tidy(left)
        return rest if rest.terms == left.terms else self.uncancelled(rest)

    def uncancelled(self, a: Sum) -> Sum:
        """`a` without terms that are equal up to their coefficients, and cancel."""
        left: list[Term] = []
        for t in a.terms:
            for place, u in enumerate(left):
                if self.terms(t, u):
                    c = t.coefficient + u.coefficient
                    left[place : place + 1] = [replace(u, coefficient=c)] if c else []
                    break
            else:
                left.append(t)
        return Sum(tuple(left))

    def tidy(self, a: Sum) -> Sum:
        """`a` without terms that are summed over nothing."""
        return Sum(tuple(t for t in a.terms if not self.is_empty(t)))

    def is_empty(self, t: Term) -> bool:
        """Whether the conditions of `t` are proven to hold nowhere."""
        if not t.binders and not t.where:
            return False
        return self.solver.impossible((*ranges(t.binders), *t.where))

    def terms(self, t: Term, u: Term) -> bool:
        """Whether two terms are equal but for their coefficients."""
        if len(t.binders) != len(u.binders):
            t, u = joined(t), joined(u)
        if len(t.binders) != len(u.binders) or len(t.factors) != len(u.factors):
            return False
        if sorted(map(_head, t.factors)) != sorted(map(_head, u.factors)):
            return False
        return any(self.agree(t, u, by) for by in self.bijections_of(t, u))

    def agree(self, t: Term, u: Term, by: Mapping[str, Polynomial]) -> bool:
        """Whether `t` is `u` by this substitution, conditions included."""
        inside = [mapped(c, lambda p: replaced(p, by)) for c in ranges(t.binders)]
        where = [mapped(c, lambda p: replaced(p, by)) for c in t.where]
        theirs = [*ranges(u.binders), *u.where]
        if not self.follow([*inside, *where], theirs):
            return False
        several = ([*inside, *where], ranges(u.binders), u.where)
        ours, back, rest = _of_any_integers(u, several)
        if not self.follow([*back, *rest], ours):
            return False
        with self.solver.scope(theirs):
            factors = [replaced_factor(f, by) for f in t.factors]
            if not self.products(factors, list(u.factors)):
                return False
        if by:
            shown = ", ".join(f"{name} = {p.key}" for name, p in by.items())
            self.bijections.append(shown)
        return True

    def follow(self, conclusions: Sequence[Condition], conditions: Sequence[Condition]) -> bool:
        """Whether `conclusions` are proven to hold where `conditions` do."""
        known = {c.key for c in conditions}
        rest = [c for c in conclusions if c.key not in known]
        return not rest or self.solver.impossible((*conditions, negated(every(rest))))

    def products(self, a: list[Factor], b: list[Factor]) -> bool:
        """Whether each factor of `a` is one of `b`."""
        if not a:
            return True
        first, rest = a[0], a[1:]
        for place, other in enumerate(b):
            if self.factors(first, other) and self.products(rest, b[:place] + b[place + 1 :]):
                return True
        return False

    def factors(self, a: Factor, b: Factor) -> bool:
        """Whether two factors are equal."""
        if a.key == b.key:
            return True
        match a, b:
            case Read(), Read():
                return a.tensor == b.tensor and self.indices(a, b)
            case Counted(x), Counted(y):
                return self.solver.holds(Zero(x - y))
            case Applied(), Applied():
                return self.applications(a, b)
            case Folded(), Folded():
                if a.function != b.function or a.dtype != b.dtype:
                    return False
                t = Term(_ONE, (Applied("element", (a.of,)),), a.binders, a.where)
                u = Term(_ONE, (Applied("element", (b.of,)),), b.binders, b.where)
                return self.terms(t, u)
            case _:
                return False

    def indices(self, a: Read, b: Read) -> bool:
        """Whether two reads are of one element."""
        pairs = [(i, j) for i, j in zip(a.index, b.index, strict=True) if i != j]
        if all(self.solver.holds(Zero(i - j)) for i, j in pairs):
            return True
        positions = position_of(a.index, a.extents) - position_of(b.index, b.extents)
        return positions.number == 0 or self.solver.holds(Zero(positions))

    def applications(self, a: Applied, b: Applied) -> bool:
        """Whether two applications are of one function and equal operands."""
        if a.function != b.function or _of(a) != _of(b) or len(a.args) != len(b.args):
            return False
        orders = [b.args, b.args[::-1]] if a.function in COMMUTATIVE else [b.args]
        return any(all(map(self.sums, a.args, order)) for order in orders)

    # ------------------------------------------------------------------------------- bijections

    def bijections_of(self, t: Term, u: Term) -> Iterator[Mapping[str, Polynomial]]:
        """Candidates: for each variable of `t` plus or minus one of `u`, and what is free."""
        if not t.binders:
            yield {}
            return
        ours, theirs = _reads(t), _reads(u)
        free, count = {b.name: b for b in u.binders}, 0
        seen = names_of_term(t) | names_of_term(u) | free.keys()
        for by in self.solved(list(t.binders), free, ours, theirs, {}):
            if not all(p.variables <= seen for p in by.values()):
                continue
            count += 1
            if count > MOST_BIJECTIONS:
                return
            yield by

    def solved(
        self,
        binders: list[Index],
        free: Mapping[str, Index],
        ours: Sequence[Read | Counted],
        theirs: Sequence[Read | Counted],
        by: Mapping[str, Polynomial],
    ) -> Iterator[Mapping[str, Polynomial]]:
        """The substitutions `by`, with values for `binders` among what is `free`."""
        self.solver.effort.spend(1)
        if not binders:
            yield by
            return
        names = {b.name for b in binders}
        seen = set[str]()
        for a, b in ((a, b) for a in ours for b in theirs):
            for i, j in _index_pairs(a, b):
                left = replaced(i, by)
                inside = names & left.variables
                if len(inside) != 1:
                    continue
                (name,) = inside
                value = solution(left, j, name)
                if value is None or f"{name}={value.key}" in seen:
                    continue
                seen.add(f"{name}={value.key}")
                target = _signed(value, free)
                if target is None:
                    continue
                rest = [x for x in binders if x.name != name]
                others = {n: x for n, x in free.items() if n != target}
                yield from self.solved(rest, others, ours, theirs, {**by, name: value})
        # what is not read by an index is any position: variables of one range for each other
        if not any(names & i.variables for a in ours for i in _indices(a)):
            first, *rest = binders
            for n, x in free.items():
                others = {m: y for m, y in free.items() if m != n}
                more = {**by, first.name: variable(x)}
                yield from self.solved(rest, others, ours, theirs, more)


def ranges(binders: Sequence[Index]) -> list[Condition]:
    """The ranges of variables as conditions."""
    return [
        c
        for b in binders
        for c in (Nonnegative(variable(b)), Nonnegative(b.extent - 1 - variable(b)))
    ]


def _of_any_integers(t: Term, several: Iterable[Sequence[Condition]]) -> Iterator[list[Condition]]:
    """Conditions on the variables of `t` as conditions on any integers.

    The solver knows the range of a variable: there it holds, whatever is asked.
    """
    by = {b.name: variable(f"{b.name} above 0") - variable(f"{b.name} below 0") for b in t.binders}
    for conditions in several:
        yield [mapped(c, lambda p: replaced(p, by)) for c in conditions]


def solution(left: Polynomial, right: Polynomial, name: str) -> Polynomial | None:
    """The value of the variable `name`, which is linear in `left`, for which both are equal."""
    c, rest = 0, left
    for monomial, d in left.terms.items():
        inside = [v for v in monomial if isinstance(v, Index) and v.name == name]
        if inside:
            if len(monomial) != 1 or d not in (1, -1):
                return None
            c, rest = d, rest - Polynomial({monomial: d})
    if not c or name in rest.variables:
        return None
    return (right - rest) * c


def _signed(value: Polynomial, free: Mapping[str, Index]) -> str | None:
    """The one variable among `free` that `value` is plus or minus, and nothing else bound."""
    names = [
        (v.name, c if len(m) == 1 else 0)
        for m, c in value.terms.items()
        for v in m
        if isinstance(v, Index) and v.name in free
    ]
    if len(names) != 1 or names[0][1] not in (1, -1):
        return None
    within = [n for n in free if n in value.variables]
    return names[0][0] if within == [names[0][0]] else None


def _index_pairs(a: Read | Counted, b: Read | Counted) -> Iterator[tuple[Polynomial, Polynomial]]:
    if isinstance(a, Read) and isinstance(b, Read):
        if a.tensor == b.tensor:
            yield from zip(a.index, b.index, strict=True)
    elif isinstance(a, Counted) and isinstance(b, Counted):
        yield a.value, b.value


def _indices(a: Read | Counted) -> tuple[Polynomial, ...]:
    return a.index if isinstance(a, Read) else (a.value,)


def _reads(t: Term) -> list[Read | Counted]:
    return [f for f in factors_in(Sum((t,))) if isinstance(f, Read | Counted)]


def _of(a: Applied) -> str:
    """The dtype of operands; numbers of rules are real."""
    return "float" if a.dtype == "number" else a.dtype


def _head(f: Factor) -> str:
    match f:
        case Read(tensor):
            return f"read {tensor}"
        case Counted():
            return "counted"
        case Applied(function, args):
            return f"{function} of {len(args)}"
        case Folded(function, binders):
            return f"{function} over {len(binders)}"


_ONE = Fraction(1)
