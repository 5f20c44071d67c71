"""Symbolic integers during tracing: constants, and numbers that a native program computes.

Numbers are hash-consed: equal expressions are the same object, and products are normalized, so
``n * 512`` and ``(n * 128) * 4`` are one number, which is computed once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.storage import ALIGNMENT

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """A number that is known only at run time: `kind` applied to `operands`, hash-consed.

    Kinds are ``extent`` (argument, axis), ``integer`` (argument), ``item`` (argument, index),
    ``carried`` from turn to turn of a loop (unique),
    ``product`` (coefficient, factors…), ``add``, ``floordiv``, ``mod``, ``min``, ``max`` (two
    numbers), ``align`` (one).
    """

    order: int
    kind: str
    operands: "tuple[Number, ...]"
    is_negative: bool
    """Whether it is not proven to be nonnegative."""


Number: TypeAlias = int | Computed


class Numbers:
    """A factory of numbers.

    `divisions` records every request of a quotient or remainder.
    """

    def __init__(self) -> None:
        self.divisions: list[Computed] = []
        self._count = 0
        self._known: dict[tuple[object, ...], Computed] = {}

    def argument(self, kind: str, *operands: int) -> Computed:
        """A number that is read from an argument: ``extent``, ``integer`` or ``item``."""
        return self._make(kind, operands, is_negative=kind != "extent")

    def carried(self, *, is_negative: bool) -> Computed:
        """A new loop-carried number."""
        return self._make("carried", (self._count,), is_negative=is_negative)

    @property
    def items(self) -> list[Computed]:
        """The numbers that are read from heap arguments."""
        return [number for number in self._known.values() if number.kind == "item"]

    def add(self, a: Number, b: Number) -> Number:
        """``a + b``."""
        if isinstance(a, int) and isinstance(b, int):
            return _within(a + b)
        if a == 0 or b == 0:
            return b if a == 0 else a
        a, b = _ordered(a, b)
        return self._make("add", (a, b), is_negative=may_be_negative(a) or may_be_negative(b))

    def subtract(self, a: Number, b: Number) -> Number:
        """``a - b``."""
        return self.add(a, self.multiply(b, -1))

    def multiply(self, a: Number, b: Number) -> Number:
        """``a · b``."""
        (c, factors), (d, others) = _factored(a), _factored(b)
        coefficient = _within(c * d)
        every = sorted((*factors, *others), key=lambda f: f.order)
        if not every or coefficient == 0:
            return coefficient
        if coefficient == 1 and len(every) == 1:
            return every[0]
        is_negative = coefficient < 0 or any(f.is_negative for f in every)
        return self._make("product", (coefficient, *every), is_negative=is_negative)

    def product(self, numbers: Iterable[Number]) -> Number:
        """The product of all `numbers`."""
        result: Number = 1
        for number in numbers:
            result = self.multiply(result, number)
        return result

    def floordiv(self, a: Number, b: Number) -> Number:
        """``a // b``; a native program leaves the call where `b` is not positive."""
        if isinstance(a, int) and isinstance(b, int) and b > 0:
            return a // b
        return self._divided("floordiv", a, b, is_negative=may_be_negative(a))

    def mod(self, a: Number, b: Number) -> Number:
        """``a % b``; a native program leaves the call where `b` is not positive."""
        if isinstance(a, int) and isinstance(b, int) and b > 0:
            return a % b
        return self._divided("mod", a, b, is_negative=False)

    def minimum(self, a: Number, b: Number) -> Number:
        """The minimum."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        a, b = _ordered(a, b)
        return self._make("min", (a, b), is_negative=may_be_negative(a) or may_be_negative(b))

    def maximum(self, a: Number, b: Number) -> Number:
        """The maximum."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        a, b = _ordered(a, b)
        return self._make("max", (a, b), is_negative=may_be_negative(a) and may_be_negative(b))

    def align(self, a: Number) -> Number:
        """`a`, rounded up to a multiple of `ALIGNMENT`."""
        if isinstance(a, int):
            return _within(-(-a // ALIGNMENT) * ALIGNMENT)
        if _factored(a)[0] % ALIGNMENT == 0:
            return a
        return self._make("align", (a,), is_negative=a.is_negative)

    def _divided(self, kind: str, a: Number, b: Number, *, is_negative: bool) -> Computed:
        number = self._make(kind, (a, b), is_negative=is_negative)
        self.divisions.append(number)
        return number

    def _make(self, kind: str, operands: tuple[Number, ...], *, is_negative: bool) -> Computed:
        key = (kind, *operands)
        if key not in self._known:
            self._known[key] = Computed(self._count, kind, operands, is_negative)
            self._count += 1
        return self._known[key]


def may_be_negative(number: Number) -> bool:
    """Whether `number` is not proven to be nonnegative."""
    return number < 0 if isinstance(number, int) else number.is_negative


def is_at_most(a: Number, b: Number) -> bool:
    """Whether ``0 ≤ a ≤ b`` is proven."""
    if a == 0:
        return not may_be_negative(b)
    (c, factors), (d, others) = _factored(a), _factored(b)
    return factors == others and 0 <= c <= d and not any(f.is_negative for f in factors)


def is_multiple(number: Number, factor: int) -> bool:
    """Whether `number` is proven to be a multiple of `factor`."""
    if isinstance(number, Computed) and number.kind in ("add", "min", "max"):
        return all(is_multiple(n, factor) for n in number.operands)
    return _factored(number)[0] % factor == 0


def literal(value: object) -> int:
    """`value` as a number; raises `Refused` unless it is a 64-bit integer."""
    if type(value) is not int:
        raise Refused(f"{value!r} is no integer")
    return _within(value)


def _factored(number: Number) -> tuple[int, tuple[Computed, ...]]:
    if isinstance(number, int):
        return number, ()
    if number.kind != "product":
        return 1, (number,)
    coefficient, *factors = number.operands
    assert isinstance(coefficient, int)
    return coefficient, tuple(f for f in factors if isinstance(f, Computed))


def _ordered(a: Number, b: Number) -> tuple[Number, Number]:
    """Both, in a canonical order."""
    place = [(-1, n) if isinstance(n, int) else (n.order, 0) for n in (a, b)]
    return (a, b) if place[0] <= place[1] else (b, a)


def _within(value: int) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise Refused(f"an integer of {value.bit_length()} bits")
    return value
