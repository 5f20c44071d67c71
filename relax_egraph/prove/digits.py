"""Arithmetic of indices: quotients, remainders, and the digits of a position in row-major order.

A quotient of ``q · b + r`` by `b` is `q` if ``0 <= r < b``, which `nonnegative` proves from the
ranges of the variables: no search, and no solver.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from relax_egraph.prove.polynomial import (
    ONE,
    ZERO,
    Digit,
    Extreme,
    Index,
    Monomial,
    Polynomial,
    Quotient,
    Remainder,
    Variable,
    of,
    product,
    substituted,
    variable,
)

Indices = Sequence[Polynomial]

_DEPTH = 6
_KNOWN = 1 << 16
"""The most answers that are known, of one comparison."""


def replaced(p: Polynomial, by: Mapping[str, Polynomial]) -> Polynomial:
    """`p` with polynomials for names."""
    return substituted(p, by, _remade)


def _remade(v: Variable, by: Mapping[str, Polynomial]) -> Polynomial:
    match v:
        case Quotient(a, b):
            return quotient(replaced(a, by), replaced(b, by))
        case Remainder(a, b):
            return remainder(replaced(a, by), replaced(b, by))
        case Extreme(greater, a, b):
            return extreme(greater, replaced(a, by), replaced(b, by))
        case Digit(position, shape, axis):
            return digit(replaced(position, by), [replaced(d, by) for d in shape], axis)
        case str() | Index():
            return variable(v)
        case _:
            return v.replaced(by)


def quotient(a: Polynomial, b: Polynomial) -> Polynomial:
    """``⌊a / b⌋`` for a positive `b`."""
    known = divided(a, b)
    return known[0] if known else _digit_of_index(a, b, 0) or variable(Quotient(a, b))


def remainder(a: Polynomial, b: Polynomial) -> Polynomial:
    """``a mod b`` for a positive `b`."""
    known = divided(a, b)
    return known[1] if known else _digit_of_index(a, b, 1) or variable(Remainder(a, b))


def _digit_of_index(a: Polynomial, b: Polynomial, axis: int) -> Polynomial | None:
    """A quotient, or a remainder, of an index along an axis that is parted evenly, as a digit."""
    index = a.lone
    count = _exact(index.extent, b) if isinstance(index, Index) else None
    return None if count is None else variable(Digit(a, (count, b), axis))


def _exact(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """The polynomial whose product with `b` is `a`."""
    return next((q for q in _quotients(a, b) if q * b == a), None)


def _quotients(a: Polynomial, b: Polynomial) -> Iterator[Polynomial]:
    """What a term of `b` divides of `a`, for each term."""
    for lead, c in sorted(b.terms.items(), key=lambda item: -len(item[0])):
        q = ZERO
        for monomial, d in a.terms.items():
            left = _without(monomial, lead)
            if left is not None and d % c == 0:
                q = q + Polynomial({left: d // c})
        yield q


def extreme(greater: bool, a: Polynomial, b: Polynomial) -> Polynomial:
    """The greater of two, or the lesser."""
    if nonnegative(a - b):
        return a if greater else b
    if nonnegative(b - a):
        return b if greater else a
    first, second = sorted((a, b), key=lambda p: p.key)
    return variable(Extreme(greater, first, second))


def forget() -> None:
    """Begin with indices of other extents, which may have the names of those before."""
    divided.cache_clear()
    nonnegative.cache_clear()


@lru_cache(_KNOWN)
def divided(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial] | None:
    """The quotient and the remainder of `a` by a positive `b`, if the ranges decide them."""
    if b.number == 1:
        return a, ZERO
    if a.number is not None and b.number is not None and b.number > 0:
        q, r = divmod(a.number, b.number)
        return of(q), of(r)
    for q in _quotients(a, b):
        rest = a - q * b
        for shift in (0, 1, -1):
            r = rest + b * shift
            if nonnegative(r) and nonnegative(b - 1 - r):
                return q - shift, r
    return None


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    left = list(monomial)
    for v in factor:
        if v not in left:
            return None
        left.remove(v)
    return tuple(left)


def digit(position: Polynomial, shape: Sequence[Polynomial], axis: int) -> Polynomial:
    """The index along `axis` of element number `position` of a tensor of `shape`."""
    if shape[axis] == ONE:
        return ZERO
    k = len(shape) - 1
    while k >= 0:
        if shape[k] == ONE:
            k -= 1
            continue
        if all(d == ONE for d in shape[:k]):
            return position
        parted = _parted(position, shape[: k + 1])
        if parted is None:
            first = next(n for n, d in enumerate(shape) if d != ONE)
            return variable(Digit(position, tuple(shape[first : k + 1]), axis - first))
        start, before, within = parted
        if start == k == axis:
            return within
        if start <= axis:
            return digit(within, shape[start : k + 1], axis - start)
        position, k = before, start - 1
    return position


def _parted(
    position: Polynomial, shape: Sequence[Polynomial]
) -> tuple[int, Polynomial, Polynomial] | None:
    """A position before the last axes, from one on, and within these: as few as can be parted."""
    for start in reversed(range(1, len(shape))):
        known = divided(position, product(shape[start:]))
        if known is not None:
            return start, *known
    return None


def position_of(index: Indices, shape: Sequence[Polynomial]) -> Polynomial:
    """The number of the element at `index`; digits of one position are joined again."""
    flat, k = ZERO, 0
    while k < len(shape):
        run = _run(index, shape, k)
        if run:
            whole, count = run
            flat = flat * product(shape[k : k + count]) + whole
            k += count
        else:
            flat = flat * shape[k] + (ZERO if shape[k] == ONE else index[k])
            k += 1
    return flat


def _run(index: Indices, shape: Sequence[Polynomial], k: int) -> tuple[Polynomial, int] | None:
    first = index[k].lone
    if not isinstance(first, Digit) or first.axis != 0:
        return None
    count = len(first.shape)
    if k + count > len(shape) or tuple(shape[k : k + count]) != first.shape:
        return None
    for n in range(count):
        expected = digit(first.position, first.shape, n)
        if index[k + n] != expected:
            return None
    return first.position, count


# ----------------------------------------------------------------------------------- inequalities


@lru_cache(_KNOWN)
def nonnegative(p: Polynomial, depth: int = _DEPTH) -> bool:
    """Whether ``p >= 0`` follows from the ranges of its variables.

    An index is in range, so that the names in the product that is its extent are at least 1.
    """
    return _nonnegative(p, depth, _positive_names(p))


def _nonnegative(p: Polynomial, depth: int, positive: frozenset[str]) -> bool:
    if _has_no_negative_term(p) or _has_no_negative_term(_from_one(p, positive)):
        return True
    return depth > 0 and any(_nonnegative(q, depth - 1, positive) for q in _lower_bounds(p))


def _has_no_negative_term(p: Polynomial) -> bool:
    return all(c > 0 and all(map(_is_nonnegative, m)) for m, c in p.terms.items())


def _positive_names(p: Polynomial) -> frozenset[str]:
    """The names that are at least 1 because an index in `p` is within its extent."""
    extents = (_extent(v) for m in p.terms for v in m if isinstance(v, Index | Digit))
    products = (m for e in extents if len(e.terms) == 1 for m in e.terms)
    return frozenset(v for m in products for v in m if isinstance(v, str))


def _from_one(p: Polynomial, positive: frozenset[str]) -> Polynomial:
    """`p` with ``n + 1`` for each name `n` in `positive`, outside of indices."""
    result = ZERO
    for monomial, c in p.terms.items():
        factors = (variable(v) + (1 if v in positive else 0) for v in monomial)
        result = result + product(factors) * c
    return result


def _is_nonnegative(v: Variable) -> bool:
    match v:
        case str() | Index() | Digit():
            return True
        case Quotient(a, b):
            return nonnegative(a, 2) and nonnegative(b, 2)
        case Remainder(_, b):
            return nonnegative(b, 2)
        case Extreme(greater, a, b):
            both = nonnegative(a, 2), nonnegative(b, 2)
            return any(both) if greater else all(both)
        case _:
            return False


def _lower_bounds(p: Polynomial) -> list[Polynomial]:
    """Polynomials that `p` is not below: one variable less, at the end of its range."""
    bounds: list[Polynomial] = []
    for v in {v for m in p.terms for v in m if isinstance(v, Index | Digit | Remainder)}:
        split = _linear(p, v)
        if split is None:
            continue
        c, rest = split
        if nonnegative(c, 1):
            bounds.append(rest)
        elif nonnegative(-c, 1):
            bounds.append(rest + c * (_extent(v) - 1))
    return bounds


def _extent(v: Variable) -> Polynomial:
    match v:
        case Index(_, extent):
            return extent
        case Digit(_, shape, axis):
            return shape[axis]
        case Remainder(_, b):
            return b
        case _:
            raise ValueError(v)


def _linear(p: Polynomial, v: Variable) -> tuple[Polynomial, Polynomial] | None:
    """``c`` and ``r`` with ``p = c · v + r``, where `v` is in neither."""
    c, rest = ZERO, ZERO
    for monomial, d in p.terms.items():
        times = monomial.count(v)
        if times > 1:
            return None
        if times:
            left = list(monomial)
            left.remove(v)
            c = c + Polynomial({tuple(left): d})
        else:
            rest = rest + Polynomial({monomial: d})
    return c, rest
