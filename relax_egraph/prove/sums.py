"""Sums of products: the form of every element that proofs compare.

An element is a sum of terms; a term is a coefficient times a product of factors, summed over
variables within their ranges, where conditions hold.  Coefficients are rational numbers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import TypeAlias

from relax_egraph.prove.conditions import Condition, mapped, names_in
from relax_egraph.prove.digits import replaced
from relax_egraph.prove.polynomial import Index, Polynomial, variable


@dataclass(frozen=True)
class Read:
    """The element of an operand at an index."""

    tensor: str
    dtype: str
    index: tuple[Polynomial, ...]
    extents: tuple[Polynomial, ...] = field(default=(), compare=False)

    @cached_property
    def key(self) -> str:
        """Equal factors have one text."""
        return f"{self.tensor}[{','.join(p.key for p in self.index)}]"


@dataclass(frozen=True)
class Counted:
    """An integer as a number, such as the number of elements of a mean."""

    value: Polynomial

    @cached_property
    def key(self) -> str:
        """Equal factors have one text."""
        return f"<{self.value.key}>"


@dataclass(frozen=True)
class Applied:
    """A function of which nothing is used but that it is one; `dtype` is that of its operands."""

    function: str
    args: "tuple[Sum, ...]"
    dtype: str = ""

    @cached_property
    def key(self) -> str:
        """Equal factors have one text."""
        return f"{self.function}:{self.dtype}({';'.join(a.key for a in self.args)})"


@dataclass(frozen=True)
class Folded:
    """A reduction that is no sum: of the multiset of `of` over `binders` where `where` holds."""

    function: str
    binders: tuple[Index, ...]
    where: tuple[Condition, ...]
    of: "Sum"
    dtype: str = ""

    @cached_property
    def key(self) -> str:
        """Equal factors have one text."""
        where = ",".join(c.key for c in self.where)
        binders = ",".join(b.name for b in self.binders)
        return f"{self.function}:{self.dtype}{{{binders}|{where}}}({self.of.key})"


Factor: TypeAlias = Read | Counted | Applied | Folded


@dataclass(frozen=True)
class Term:
    """``coefficient · Σ Π factors`` over `binders` where all of `where` holds."""

    coefficient: Fraction
    factors: tuple[Factor, ...] = ()
    binders: tuple[Index, ...] = ()
    where: tuple[Condition, ...] = ()

    @cached_property
    def key(self) -> str:
        """Equal terms but for the coefficient have one text."""
        factors = ".".join(sorted(f.key for f in self.factors))
        where = ",".join(sorted(c.key for c in self.where))
        return f"{','.join(b.name for b in self.binders)}|{where}|{factors}"


@dataclass(frozen=True)
class Sum:
    """A sum of terms; 0 of none."""

    terms: tuple[Term, ...] = ()

    @cached_property
    def key(self) -> str:
        """Equal sums may have one text."""
        return "+".join(sorted(f"{t.coefficient}*{t.key}" for t in self.terms))

    @cached_property
    def free(self) -> frozenset[str]:
        """The names in it, without those that it binds."""
        return frozenset[str]().union(*map(names_of_term, self.terms))

    @property
    def number(self) -> Fraction | None:
        """The value of a constant."""
        if not self.terms:
            return Fraction(0)
        first = self.terms[0]
        plain = len(self.terms) == 1 and not (first.factors or first.binders or first.where)
        return first.coefficient if plain else None

    @property
    def factor(self) -> Factor | None:
        """The one factor that this is."""
        if len(self.terms) != 1:
            return None
        (t,) = self.terms
        plain = t.coefficient == 1 and not t.binders and not t.where and len(t.factors) == 1
        return t.factors[0] if plain else None


NOTHING = Sum()
_FRESH = count()
_FRESH_NAME = re.compile(r"\bk@\d+\b")


def fresh(extent: Polynomial) -> Index:
    """A new variable of a sum; like those of `axes_of`, it has a name that no rule can write."""
    return Index(f"k@{next(_FRESH)}", extent)


def axes_of(extents: Iterable[Polynomial]) -> list[Index]:
    """The variables of the axes of a tensor."""
    return [Index(f"i@{k}", e) for k, e in enumerate(extents)]


def numbered(text: str) -> str:
    """A text for readers: `fresh` variables are k0, k1 in the order of the text, axes i0, i1."""
    names = dict.fromkeys(_FRESH_NAME.findall(text))
    numbers = {name: f"k{n}" for n, name in enumerate(names)}
    return _FRESH_NAME.sub(lambda found: numbers[found.group()], text).replace("i@", "i")


def number(value: Fraction | int) -> Sum:
    """A constant."""
    return Sum((Term(Fraction(value)),)) if value else NOTHING


def single(factor: Factor) -> Sum:
    """One factor as a sum."""
    return Sum((Term(Fraction(1), (factor,)),))


def apply(function: str, *args: Sum, dtype: str = "") -> Sum:
    """A function of sums."""
    return single(Applied(function, args, dtype))


def add(a: Sum, b: Sum) -> Sum:
    """``a + b``; terms of one text are one."""
    terms: dict[str, Term] = {}
    for t in (*a.terms, *b.terms):
        before = terms.get(t.key)
        c = t.coefficient + (before.coefficient if before else 0)
        terms[t.key] = Term(c, t.factors, t.binders, t.where)
    return Sum(tuple(t for t in terms.values() if t.coefficient))


def scale(a: Sum, by: Fraction | int) -> Sum:
    """``by · a``."""
    return Sum(
        tuple(Term(t.coefficient * by, t.factors, t.binders, t.where) for t in a.terms if by)
    )


def multiply(a: Sum, b: Sum) -> Sum:
    """``a · b``, term by term."""
    result = NOTHING
    for x in a.terms:
        for y in b.terms:
            z = renamed(y) if {b.name for b in x.binders} & {b.name for b in y.binders} else y
            factors = tuple(sorted((*x.factors, *z.factors), key=lambda f: f.key))
            term = Term(
                x.coefficient * z.coefficient,
                factors,
                (*x.binders, *z.binders),
                (*x.where, *z.where),
            )
            result = add(result, Sum((term,)))
    return result


def summed(a: Sum, binders: tuple[Index, ...], where: tuple[Condition, ...]) -> Sum:
    """``Σ a`` over `binders` where all of `where` holds."""
    terms = (
        Term(t.coefficient, t.factors, (*binders, *t.binders), (*where, *t.where)) for t in a.terms
    )
    return Sum(tuple(terms))


def renamed(t: Term) -> Term:
    """`t` with new names for its variables."""
    return rebound(t, {b.name: variable(fresh(b.extent)) for b in t.binders})


def rebound(t: Term, by: Mapping[str, Polynomial]) -> Term:
    """`t` with its variables replaced; those that become variables stay bound."""
    values = [by[b.name].lone if b.name in by else b for b in t.binders]
    binders = tuple(v for v in values if isinstance(v, Index))
    changed = replaced_term(t, by)
    return Term(t.coefficient, changed.factors, binders, changed.where)


def replaced_factor(f: Factor, by: Mapping[str, Polynomial]) -> Factor:
    """`f` with polynomials for names."""
    match f:
        case Read(tensor, dtype, index, extents):
            return Read(tensor, dtype, tuple(replaced(p, by) for p in index), extents)
        case Counted(value):
            return Counted(replaced(value, by))
        case Applied(function, args, dtype):
            return Applied(function, tuple(replaced_sum(a, by) for a in args), dtype)
        case Folded(function, binders, where, of, dtype):
            conditions = tuple(mapped(c, lambda p: replaced(p, by)) for c in where)
            return Folded(function, binders, conditions, replaced_sum(of, by), dtype)


def replaced_sum(a: Sum, by: Mapping[str, Polynomial]) -> Sum:
    """`a` with polynomials for names that it does not bind."""
    if not by or a.free.isdisjoint(by):
        return a
    return Sum(tuple(replaced_term(t, by) for t in a.terms))


def replaced_term(t: Term, by: Mapping[str, Polynomial]) -> Term:
    """`t` with polynomials for names that it does not bind."""
    conditions = tuple(mapped(c, lambda p: replaced(p, by)) for c in t.where)
    factors = tuple(replaced_factor(f, by) for f in t.factors)
    return Term(t.coefficient, factors, t.binders, conditions)


def names_of_term(t: Term) -> frozenset[str]:
    """The names in `t` that it does not bind."""
    names = (*map(names_of_factor, t.factors), *map(names_in, t.where))
    return frozenset[str]().union(*names) - {b.name for b in t.binders}


def names_of_factor(f: Factor) -> frozenset[str]:
    """The names in `f` that it does not bind."""
    match f:
        case Read(_, _, index):
            return frozenset[str]().union(*(p.variables for p in index))
        case Counted(value):
            return value.variables
        case Applied(_, args):
            return frozenset[str]().union(*(a.free for a in args))
        case Folded(_, binders, where, of):
            return of.free.union(*map(names_in, where)) - {b.name for b in binders}


def factors_in(a: Sum) -> Iterable[Factor]:
    """All factors in `a`, also within functions and reductions."""
    for t in a.terms:
        for f in t.factors:
            yield f
            match f:
                case Applied(_, args):
                    for arg in args:
                        yield from factors_in(arg)
                case Folded(_, _, _, of):
                    yield from factors_in(of)
                case Read() | Counted():
                    pass
