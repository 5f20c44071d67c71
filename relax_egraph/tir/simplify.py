"""Simplifies index arithmetic: sums of products, and ``//`` and ``%`` of variables in a range.

An index is represented as a polynomial: a map from products of atoms to coefficients.  Atoms are
variables, dimension symbols, and everything else but ``+ - *``, for instance a load or a ``//``
that does not simplify.
"""

from collections.abc import Mapping
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.tir.expr import Binary, BufferLoad, DimSymbol, Imm, TirExpr, TirVar, binary
from relax_egraph.tir.rewrite import nodes, rewrite

Monomial: TypeAlias = tuple[TirExpr, ...]
"""Atoms that are multiplied, in order of number."""

Poly: TypeAlias = dict[Monomial, int]
"""Coefficients, none of them 0, in order of first appearance."""

Extents: TypeAlias = Mapping[TirVar, Dim]
"""Variables run from 0 to below their extent; other variables are unbounded."""


def simplify(expr: TirExpr, extents: Extents) -> TirExpr:
    """`expr` with simpler indices; equal for all values of the variables within `extents`.

    Only indices with ``//`` or ``%`` change.
    """

    def change(e: TirExpr) -> TirExpr:
        if not isinstance(e, BufferLoad):
            return e
        new = tuple(simplify_index(i, extents) for i in e.indices)
        same = all(a is b for a, b in zip(e.indices, new, strict=True))
        return e if same else BufferLoad(e.buffer, new)

    return rewrite(expr, change)


def simplify_index(index: TirExpr, extents: Extents) -> TirExpr:
    """One index, as `simplify` does."""
    rounded = any(isinstance(n, Binary) and n.kind in ("//", "%") for n in nodes(index))
    return _Simplifier(extents).simplified(index) if rounded else index


class _Simplifier:
    """Polynomials over the atoms of one index."""

    def __init__(self, extents: Extents) -> None:
        self._extents = extents
        self._order: dict[TirExpr, int] = {}

    def simplified(self, e: TirExpr) -> TirExpr:
        return _expr(self._poly(e))

    def _poly(self, e: TirExpr) -> Poly:
        match e:
            case Imm(value=value):
                return {(): int(value)} if value else {}
            case Binary(kind="+", a=a, b=b):
                return self._rejoined(_sum(self._poly(a), self._poly(b), 1))
            case Binary(kind="-", a=a, b=b):
                return _sum(self._poly(a), self._poly(b), -1)
            case Binary(kind="*", a=a, b=b):
                return self._product(self._poly(a), self._poly(b))
            case Binary(kind="//", a=a, b=b):
                return self._floordiv(self._poly(a), self._poly(b))
            case Binary(kind="%", a=a, b=b):
                return self._mod(self._poly(a), self._poly(b))
            case _:
                return self._atom(e)

    def _atom(self, e: TirExpr) -> Poly:
        self._order.setdefault(e, len(self._order))
        return {(e,): 1}

    def _rejoined(self, p: Poly) -> Poly:
        """`p` with ``(x // c) · c + x % c`` replaced by ``x``."""
        for monomial, coefficient in p.items():
            for atom in monomial:
                if not isinstance(atom, Binary) or atom.kind != "%":
                    continue
                quotient = Binary("//", atom.a, atom.b)
                if quotient not in self._order:
                    continue
                rest: Poly = {_without(monomial, (atom,)) or (): coefficient}
                multiple = self._product(rest, self._product({(quotient,): 1}, self._poly(atom.b)))
                if all(p.get(m) == c for m, c in multiple.items()):
                    whole = self._product(rest, self._poly(atom.a))
                    left = _sum(_sum(p, {monomial: coefficient}, -1), multiple, -1)
                    return self._rejoined(_sum(left, whole, 1))
        return p

    def _product(self, a: Poly, b: Poly) -> Poly:
        result: Poly = {}
        for m, x in a.items():
            for n, y in b.items():
                result = _sum(result, {self._times(m, n): x * y}, 1)
        return result

    def _times(self, m: Monomial, n: Monomial) -> Monomial:
        return tuple(sorted((*m, *n), key=self._order.__getitem__))

    def _floordiv(self, a: Poly, c: Poly) -> Poly:
        quotient, rest = self._divided(a, c)
        if not rest or self._below(rest, c):
            return quotient
        inner = next(iter(rest)) if [*rest.values()] == [1] else ()
        if len(inner) == 1 and isinstance(inner[0], Binary) and inner[0].kind == "//":
            # (x // d) // c = x // (d * c)
            divisor = self._product(self._poly(inner[0].b), c)
            return _sum(quotient, self._floordiv(self._poly(inner[0].a), divisor), 1)
        return _sum(quotient, self._atom(Binary("//", _expr(rest), _expr(c))), 1)

    def _mod(self, a: Poly, c: Poly) -> Poly:
        _, rest = self._divided(a, c)
        if not rest or self._below(rest, c):
            return rest
        return self._atom(Binary("%", _expr(rest), _expr(c)))

    def _divided(self, a: Poly, c: Poly) -> tuple[Poly, Poly]:
        """Polynomials with ``a = quotient · c + rest``; no term of `rest` can be divided on."""
        quotient: Poly = {}
        rest: Poly = {}
        if not c:
            return quotient, a
        lead = max(c, key=self._rank)
        todo = dict(a)
        while todo:
            term = max(todo, key=self._rank)
            factor = _without(term, lead)
            if factor is None or todo[term] % c[lead]:
                rest[term] = todo.pop(term)
                continue
            part = {factor: todo[term] // c[lead]}
            quotient = _sum(quotient, part, 1)
            todo = _sum(todo, self._product(part, c), -1)
        return quotient, rest

    def _rank(self, m: Monomial) -> tuple[int, tuple[int, ...]]:
        return len(m), tuple(-self._order[x] for x in m)

    def _below(self, rest: Poly, c: Poly) -> bool:
        """Whether ``0 <= rest < c`` is proven."""
        top, bound = self._greatest(rest), _dim(c)
        return top is not None and bound is not None and dims.prove_ge(dims.sub(bound, 1), top)

    def _greatest(self, p: Poly) -> Dim | None:
        """An upper bound of `p`, whose terms are nonnegative; ``None`` if none is known."""
        total: Dim = 0
        for monomial, coefficient in p.items():
            tops = [self._greatest_atom(x) for x in monomial]
            known = [t for t in tops if t is not None]
            if coefficient < 0 or len(known) < len(tops):
                return None
            total = dims.add(total, dims.mul(coefficient, dims.product(known)))
        return total

    def _greatest_atom(self, e: TirExpr) -> Dim | None:
        match e:
            case TirVar() if e in self._extents:
                return dims.sub(self._extents[e], 1)
            case DimSymbol(name=name):
                return dims.symbol(name)
            case Binary(kind="%", b=b):
                bound = _dim(self._poly(b))
                return None if bound is None else dims.sub(bound, 1)
            case _:
                return None


def _sum(a: Poly, b: Poly, sign: int) -> Poly:
    result = dict(a)
    for monomial, coefficient in b.items():
        result[monomial] = result.get(monomial, 0) + sign * coefficient
        if not result[monomial]:
            del result[monomial]
    return result


def _without(m: Monomial, factors: Monomial) -> Monomial | None:
    """`m` divided by `factors`, or ``None`` if it is no multiple of them."""
    rest = list(m)
    for f in factors:
        if f not in rest:
            return None
        rest.remove(f)
    return tuple(rest)


def _dim(p: Poly) -> Dim | None:
    """`p` as a dimension, if it is one."""
    total: Dim = 0
    for monomial, coefficient in p.items():
        symbols = [dims.symbol(x.name) for x in monomial if isinstance(x, DimSymbol)]
        if len(symbols) < len(monomial):
            return None
        total = dims.add(total, dims.mul(coefficient, dims.product(symbols)))
    return total


def _expr(p: Poly) -> TirExpr:
    """`p` as an expression: positive terms first, a constant last among them."""
    terms = sorted(p.items(), key=lambda item: (item[1] < 0, not item[0]))
    result: TirExpr = Imm(0, "int64")
    for monomial, coefficient in terms:
        term: TirExpr = Imm(abs(coefficient), "int64")
        if monomial:
            factors = iter(monomial)
            written = next(factors)
            for factor in factors:
                written = binary("*", written, factor)
            term = binary("*", written, term)
        result = binary("-" if coefficient < 0 else "+", result, term)
    return result
