"""Assumptions on symbols: ``n >= 1``, ``n <= 512``, ``s % 8 == 0``, ``m == 2*n``.

A condition is a comparison of dimensions, or a chain of them.  Together the conditions give each
symbol a range, or a value over other symbols.
"""

import ast
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from math import gcd

import sympy

from relax_egraph.errors import AssumptionError, Span, known_names
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.symbol_ranges import Assumptions as Assumptions
from relax_egraph.ir.symbol_ranges import Range
from relax_egraph.ir.symbol_ranges import active as active
from relax_egraph.ir.symbol_ranges import assuming as assuming
from relax_egraph.ir.syntax import parsed_expression

FORMS = "n >= 1, n <= 512, 1 <= n <= 512, s % 8 == 0, m == 2*n"
"""The forms of conditions, for messages; bounds and remainders are numbers."""


_NOTE = f"conditions are written {FORMS}"


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a condition, and its number."""

    text: str
    number: int

    def error(self, node: ast.expr | None, message: str, note: str = _NOTE) -> AssumptionError:
        """An error that points at `node`, or at the beginning of the text."""
        column = node.col_offset + 1 if node else 1
        return AssumptionError(Span(f"assume[{self.number}]", 1, column), message, self.text, note)


@dataclass(frozen=True, slots=True)
class _Condition:
    """`expr` is a multiple of `modulus` if that is not 0, else is 0 if `equal`, else at least 0.

    `defines` are symbols that are a whole side of ``==``; `left` is the node where it begins.
    """

    expr: Dim
    modulus: int
    equal: bool
    defines: tuple[str, ...]
    source: _Text
    left: ast.expr


def parse(texts: Sequence[str], among: Sequence[Set[str]] | None = None) -> Assumptions:
    """The assumptions of several `texts`.

    With `among`, the symbols of each condition are in one of these sets.  Raises `AssumptionError`
    if a text cannot be parsed, is false, or has other symbols.
    """
    written = tuple(" ".join(text.split()) for text in texts)
    with assuming(None):
        conditions = [c for k, text in enumerate(written) for c in _read(_Text(text, k), among)]
        known = _Conditions()
        for condition in conditions:
            known.define(condition)
        for condition in conditions:
            known.restrict(condition)
        return known.assumptions(written)


def conditions(known: Assumptions) -> tuple[str, ...]:
    """The ranges of symbols in `known`, as conditions."""
    texts: list[str] = []
    for name, r in known.ranges:
        if r.least:
            texts.append(f"{name} >= {r.least}")
        if r.most is not None:
            texts.append(f"{name} <= {r.most}")
        if r.step > 1:
            texts.append(f"{name} % {r.step} == {r.least % r.step}")
    return tuple(texts)


def _read(source: _Text, among: Sequence[Set[str]] | None) -> Iterator[_Condition]:
    try:
        tree = parsed_expression(source.text)
    except (SyntaxError, ValueError):
        raise source.error(None, "this does not read") from None
    if not isinstance(tree, ast.Compare):
        raise source.error(tree, "this is no condition")
    left = tree.left
    for operator, right in zip(tree.ops, tree.comparators, strict=True):
        condition = _condition(left, operator, right, source)
        if among is not None:
            _check_symbols(tree, source, among)
        yield condition
        left = right


def _check_symbols(tree: ast.Compare, source: _Text, among: Sequence[Set[str]]) -> None:
    """Raise `AssumptionError` unless all symbols of a condition are in one set of `among`."""
    nodes = list(ast.walk(tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = {n.id: n for n in nodes if isinstance(n, ast.Name) and id(n) not in called}
    known = set[str]().union(*among)
    for name, node in names.items():
        if name not in known:
            message = f"no parameter has {name} alone as a dimension"
            raise source.error(node, message, known_names(name, known))
    if not any(names.keys() <= some for some in among):
        raise source.error(tree.left, f"no function has both {' and '.join(names)}", "")


def _condition(left: ast.expr, operator: ast.cmpop, right: ast.expr, source: _Text) -> _Condition:
    match operator, left:
        case ast.Eq(), ast.BinOp(left=inner, op=ast.Mod(), right=divisor):
            modulus, remainder = _dim(divisor, source), _dim(right, source)
            if not isinstance(modulus, int) or modulus < 1:
                raise source.error(divisor, "a remainder is of a division by a number, 1 or more")
            if not isinstance(remainder, int) or not 0 <= remainder < modulus:
                raise source.error(right, f"no remainder of a division by {modulus} is this")
            expr = dims.sub(_dim(inner, source), remainder)
            return _Condition(expr, modulus, False, (), source, left)
        case ast.Eq(), _:
            expr = dims.sub(_dim(left, source), _dim(right, source))
            names = tuple(side.id for side in (left, right) if isinstance(side, ast.Name))
            return _Condition(expr, 0, True, names, source, left)
        case ((ast.GtE() | ast.Gt()), _):
            expr = dims.sub(_dim(left, source), _dim(right, source))
        case ((ast.LtE() | ast.Lt()), _):
            expr = dims.sub(_dim(right, source), _dim(left, source))
        case _:
            raise source.error(left, "this comparison is not understood")
    strict = isinstance(operator, ast.Gt | ast.Lt)
    return _Condition(dims.sub(expr, int(strict)), 0, False, (), source, left)


def _dim(node: ast.expr, source: _Text) -> Dim:
    try:
        return dims.from_ast(node)
    except (ValueError, ZeroDivisionError) as problem:
        raise source.error(node, str(problem), "") from None


class _Conditions:
    """The conditions so far: values of symbols, and ranges of symbols without a value."""

    def __init__(self) -> None:
        self._values: dict[str, Dim] = {}
        self._ranges: dict[str, Range] = {}
        self._texts: dict[str, list[str]] = {}

    def assumptions(self, texts: tuple[str, ...]) -> Assumptions:
        values = {name: sympy.sympify(value) for name, value in self._values.items()}
        ranges = ((name, r) for name, r in self._ranges.items() if r != Range())
        return Assumptions(tuple(sorted(ranges)), tuple(sorted(values.items(), key=str)), texts)

    def define(self, condition: _Condition) -> None:
        """Add the value of a symbol that `condition` defines, if it does."""
        expr = dims.substitute(condition.expr, self._values)
        for name in condition.defines:
            if name in self._values or name not in dims.symbols(expr):
                continue
            rest = dims.substitute(expr, {name: 0})
            slope = dims.sub(dims.substitute(expr, {name: 1}), rest)
            if slope not in (1, -1) or not dims.symbols(rest) or name in dims.symbols(rest):
                continue
            value = dims.mul(-slope, rest)
            for other, known in self._values.items():
                self._values[other] = dims.substitute(known, {name: value})
            self._values[name] = value
            return

    def restrict(self, condition: _Condition) -> None:
        """Narrow the range of the symbol of `condition`."""
        expr = dims.substitute(condition.expr, self._values)
        for name in condition.defines:
            if name in self._values and dims.symbols(value := self._values[name]):
                self._narrow(value, condition, implied=True)
        if isinstance(expr, int):
            false = expr % condition.modulus if condition.modulus else expr
            if false if condition.equal or condition.modulus else expr < 0:
                message = "this contradicts what is assumed besides"
                raise condition.source.error(condition.left, message, "")
            return
        self._narrow(expr, condition, implied=False)

    def _narrow(self, expr: Dim, condition: _Condition, *, implied: bool) -> None:
        """Add ``expr >= 0`` if it is `implied`, else `condition`, which is about `expr`."""
        linear = _linear(expr)
        if linear is None:
            if implied:
                return  # sympy may still decide it by itself
            message = "a condition is on one symbol, with numbers"
            raise condition.source.error(condition.left, message)
        name, slope, offset = linear
        texts = self._texts.setdefault(name, [])
        old = self._ranges.get(name, Range())
        modulus = 0 if implied else condition.modulus
        exact = condition.equal and not implied
        new = _intersection(old, _solutions(slope, offset, modulus, exact))
        if new is None:
            others = ", ".join(t for t in dict.fromkeys(texts) if t != condition.source.text)
            note = f"{name} is 0 or more" + f"; assumed besides: {others}" * bool(others)
            message = f"no {name} is left for which this holds"
            raise condition.source.error(condition.left, message, note)
        self._ranges[name] = new
        texts.append(condition.source.text)


def _linear(expr: Dim) -> tuple[str, int, int] | None:
    """`expr` as ``slope · symbol + offset``; ``None`` if it is not linear."""
    names = dims.symbols(expr)
    if len(names) != 1:
        return None
    (name,) = names
    offset = dims.substitute(expr, {name: 0})
    slope = dims.sub(dims.substitute(expr, {name: 1}), offset)
    if not isinstance(slope, int) or not isinstance(offset, int):
        return None
    line = dims.add(dims.mul(slope, dims.symbol(name)), offset)
    return (name, slope, offset) if line == expr else None


def _solutions(slope: int, offset: int, modulus: int, equal: bool) -> Range | None:
    """The x for which ``slope·x + offset`` is a multiple of `modulus`, 0, or not negative."""
    if modulus:
        common = gcd(slope, modulus)
        if offset % common:
            return None
        step = modulus // common
        return Range((-offset // common) * pow(slope // common, -1, step) % step, step)
    bound = -offset // slope  # rounded down
    if equal:
        return Range(bound, 1, bound) if bound * slope == -offset else None
    return Range(max(0, -(offset // slope))) if slope > 0 else Range(0, 1, bound)


def _intersection(a: Range, b: Range | None) -> Range | None:
    """The intersection of two ranges; ``None`` if it is empty."""
    if b is None:
        return None
    common = gcd(a.step, b.step)
    if (b.least - a.least) % common:
        return None
    step = a.step * b.step // common
    times = (b.least - a.least) // common * pow(a.step // common, -1, b.step // common)
    low = max(a.least, b.least)
    least = low + (a.least + a.step * times - low) % step
    ends = [r.most for r in (a, b) if r.most is not None]
    if not ends:
        return Range(least, step)
    most = min(ends)
    return None if most < least else Range(least, step, most - (most - least) % step)
