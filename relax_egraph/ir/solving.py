"""Consequences of equations between extents, as conditions on sizes."""

from collections.abc import Iterator, Mapping
from typing import cast

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.equations import Equation
from relax_egraph.ir.multiples import quotient
from relax_egraph.ir.symbol_ranges import memoised


def consequence(equation: Equation) -> tuple[Dim, Dim] | None:
    """Two dimensions that are equal wherever `equation` holds; the second is the simpler one.

    ``None`` if it may also hold where they differ: ``n`` and ``m`` broadcast if either is 1, while
    ``min(64, s)`` is 1 only where ``s`` is 1 too, or both are 0.
    """
    left, right = _without_common_factors(equation.left, equation.right)
    for extent in equation.repeated:
        if not all(_implies(case, extent, left, right) for case in _where_one(extent)):
            return None
    new, old = sorted((left, right), key=_complexity)
    return None if _has(new, old) else (old, new)


def condition(old: Dim, new: Dim) -> str:
    """``old == new``, as a user writes it: ``s <= 64`` of ``min(64, s) == s``."""
    if isinstance(old, sympy.Min | sympy.Max) and new in old.args:
        others = (dims.canonical(a) for a in sorted(old.args, key=str) if a != new)
        return " and ".join(_comparison(new, a, isinstance(old, sympy.Min)) for a in others)
    multiple = _multiple(old, new)
    if multiple:
        return f"{dims.text(new)} % {multiple} == 0"
    a, b = (old, new) if isinstance(new, int) else (new, old)
    return f"{dims.text(a)} == {dims.text(b)}"


def differences(old: Dim, new: Dim) -> Iterator[Dim]:
    """Dimensions that are nonnegative where ``old == new``: ``s - 10`` of ``max(10, s) == s``."""
    if isinstance(old, sympy.Min | sympy.Max) and new in old.args:
        others = (dims.canonical(a) for a in old.args if a != new)
        for other in others:
            yield dims.sub(new, other) if isinstance(old, sympy.Max) else dims.sub(other, new)


def replace_part(dim: Dim, old: Dim, new: Dim) -> Dim:
    """`dim` with every `old` in it replaced by `new`."""
    if dim == old:
        return new
    if isinstance(dim, int) or isinstance(old, int):
        return dim
    changed = cast(sympy.Expr, dim.xreplace({old: sympy.sympify(new)}))
    return dim if changed == dim else dims.canonical(changed)


def _comparison(a: Dim, b: Dim, is_less: bool) -> str:
    """``a <= b`` or ``a >= b``, with a number on the right."""
    if isinstance(a, int):
        a, b, is_less = b, a, not is_less
    return f"{dims.text(a)} {'<=' if is_less else '>='} {dims.text(b)}"


def _without_common_factors(left: Dim, right: Dim) -> tuple[Dim, Dim]:
    """Both sides of an equation, divided by common factors that are never 0."""
    a, b = (list(sympy.Mul.make_args(sympy.sympify(side))) for side in (left, right))
    for factor in list(a):
        if factor in b and dims.prove_ge(dims.canonical(factor), 1):
            a.remove(factor)
            b.remove(factor)
    return dims.canonical(sympy.Mul(*a)), dims.canonical(sympy.Mul(*b))


def _implies(case: Mapping[Dim, int], extent: Dim, left: Dim, right: Dim) -> bool:
    """Whether ``left == right`` in a `case` in which `extent` might be 1."""
    try:
        for old, new in case.items():
            extent, left, right = (replace_part(d, old, new) for d in (extent, left, right))
    except ZeroDivisionError:
        return False
    return dims.distinct(extent, 1) or dims.equal(left, right)


@memoised
def _where_one(dim: Dim) -> tuple[Mapping[Dim, int], ...]:
    """A cover of the cases in which `dim` is 1: each maps dimensions to values."""
    if isinstance(dim, int):
        return ({},) if dim == 1 else ()
    if isinstance(dim, sympy.Min | sympy.Max):  # then an operand is 1
        return tuple(case for a in dim.args for case in _where_one(dims.canonical(a)))
    if isinstance(dim, sympy.Mul):
        factors = [dims.canonical(a) for a in dim.args]
        if all(dims.divides(1, f) and dims.prove_ge(f, 0) for f in factors):  # then all are 1
            return () if any(isinstance(f, int) for f in factors) else (dict.fromkeys(factors, 1),)
    if len(dim.free_symbols) == 1:
        (symbol,) = cast(set[sympy.Symbol], dim.free_symbols)
        slope = dims.canonical(cast(sympy.Expr, dim.coeff(symbol)))
        offset = dims.sub(dim, dims.mul(slope, symbol))
        if isinstance(slope, int) and isinstance(offset, int):
            value, rest = divmod(1 - offset, slope)
            return ({symbol: value},) if rest == 0 and value >= 0 else ()
    return ({dim: 1},)


def _complexity(dim: Dim) -> tuple[int, int, str]:
    """Numbers before symbols before expressions."""
    if isinstance(dim, int):
        return 0, 0, ""
    return 1, sum(1 for _ in sympy.preorder_traversal(dim)), str(dim)


def _has(dim: Dim, part: Dim) -> bool:
    return not isinstance(dim, int) and not isinstance(part, int) and dim.has(part)


def _multiple(old: Dim, new: Dim) -> int:
    """The k such that `old` is `new` rounded up or down to a multiple of k; 0 if there is none."""
    for divisor in set(_divisors(old)):
        up = dims.floordiv(dims.add(new, divisor - 1), divisor)
        if old in (dims.mul(divisor, up), dims.mul(divisor, dims.floordiv(new, divisor))):
            return divisor
    return 0


def _divisors(dim: Dim) -> Iterator[int]:
    for part in () if isinstance(dim, int) else sympy.preorder_traversal(dim):
        if isinstance(part, sympy.floor):
            _, divisor = quotient(part)
            if divisor.is_Integer:
                yield int(cast(sympy.Integer, divisor))
