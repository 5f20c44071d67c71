"""Symbolic sizes and offsets in bytes, and proofs of their order for all values of the symbols.

A plan repeats few different comparisons many times: answers are memoized.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.polynomial import Polynomial, atom, from_terms, number

ALIGNMENT = 64
"""The alignment of offsets, in bytes."""

SAMPLE = 128
"""The value of every symbol when an order of sizes is guessed."""

MOST_PARTS = 8
"""The most parts of an `Extent`, none of which is proven to be the largest."""


@dataclass(frozen=True, slots=True)
class Extent:
    """An offset, or the end of a block: the maximum of `parts`, 0 if there are none."""

    parts: tuple[Polynomial, ...] = ()

    def dim(self) -> Dim:
        """The extent as a dimension."""
        return dims.maximum(*(p.dim() for p in self.parts)) if self.parts else 0

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The extent in bytes where the symbols have `values`."""
        return max((p.evaluate(values) for p in self.parts), default=0)


class ByteSizes:
    """Memoized arithmetic and proofs on the sizes of one plan."""

    def __init__(self) -> None:
        self._guesses: dict[Polynomial, int] = {}
        self._answers: dict[tuple[Polynomial, Polynomial], bool] = {}
        self._ends: dict[tuple[Extent, Polynomial], Extent] = {}
        self._aligned: dict[Polynomial, Polynomial] = {}
        self._lines: dict[str, Polynomial] = {}

    def guess(self, extent: Extent) -> int:
        """The value of `extent` where every symbol is `SAMPLE`."""
        return max(map(self.guessed_size, extent.parts), default=0)

    def guessed_size(self, size: Polynomial) -> int:
        """The value of `size` where every symbol is `SAMPLE`."""
        if size not in self._guesses:
            atoms = {a for monomial, _ in size.terms for a in monomial}
            names = {name for a in atoms for name in dims.symbols(dims.parse(a))}
            self._guesses[size] = size.evaluate(dict.fromkeys(names, SAMPLE))
        return self._guesses[size]

    # --- arithmetic -------------------------------------------------------------------

    def end(self, offset: Extent, size: Polynomial) -> Extent:
        """``offset + size``."""
        if (offset, size) not in self._ends:
            parts = tuple(part + size for part in offset.parts) or (size,)
            self._ends[offset, size] = Extent(parts)
        return self._ends[offset, size]

    def aligned_end(self, offset: Extent, size: Polynomial) -> Extent:
        """The first multiple of `ALIGNMENT` after `size` bytes at the aligned `offset`."""
        if size not in self._aligned:
            self._aligned[size] = self._in_lines(size)
        return self.end(offset, self._aligned[size])

    def _in_lines(self, size: Polynomial) -> Polynomial:
        if all(c % ALIGNMENT == 0 for _, c in size.terms):
            return size
        if size.constant is not None:
            return number(-(-size.constant // ALIGNMENT) * ALIGNMENT)
        lines = dims.text(dims.floordiv(dims.add(size.dim(), ALIGNMENT - 1), ALIGNMENT))
        self._lines[lines] = size
        return atom(lines).times(ALIGNMENT)

    def maximum(self, extents: Iterable[Extent]) -> Extent:
        """An upper bound of `extents`: their maximum, or slightly more."""
        largest = self.largest(dict.fromkeys(p for e in extents for p in e.parts))
        return Extent(tuple(largest) if len(largest) <= MOST_PARTS else (_upper_bound(largest),))

    # --- proofs -----------------------------------------------------------------------

    def largest(self, sizes: Iterable[Polynomial]) -> list[Polynomial]:
        """`sizes` without those that are proven to be at most another one."""
        kept: list[Polynomial] = []
        for size in sizes:
            if any(self.at_most(size, other) for other in kept):
                continue
            kept = [other for other in kept if not self.at_most(other, size)]
            kept.append(size)
        return kept

    def is_behind(self, end: Extent, offset: Extent) -> bool:
        """Whether ``end ≤ offset`` is proven."""
        zero = (Polynomial(),)
        return all(any(self.at_most(a, b) for b in offset.parts or zero) for a in end.parts or zero)

    def at_most(self, a: Polynomial, b: Polynomial) -> bool:
        """Whether ``a ≤ b`` is proven."""
        if a == b:
            return True
        if (a, b) not in self._answers:
            self._answers[a, b] = self._is_nonnegative(b - a)
        return self._answers[a, b]

    def _is_nonnegative(self, value: Polynomial) -> bool:
        """Whether ``value ≥ 0`` is proven, with bounds of the aligned sizes in it."""
        if value.constant is not None:
            return value.constant >= 0
        if value.is_nonnegative:
            return True
        lines = [(m[0], c) for m, c in value.terms if len(m) == 1 and m[0] in self._lines]
        for name, count in lines:
            for other, more in lines:
                if count < 0 < more and self.at_most(self._lines[name], self._lines[other]):
                    both = (atom(name) - atom(other)).times(min(-count, more))
                    return self._is_nonnegative(value + both)
        return bool(lines) and any(
            (value + self._lines_bounded(lines, above)).is_nonnegative
            for above in (self._with_padding, self._line_by_line)
        )

    def _lines_bounded(
        self, lines: list[tuple[str, int]], above: Callable[[Polynomial], Polynomial]
    ) -> Polynomial:
        """A lower bound of a sum: aligned sizes are replaced by their lower or upper bounds.

        Each atom is a number of lines; `above` bounds the subtracted ones, in bytes.
        """
        change = Polynomial()
        for name, count in lines:
            size = self._lines[name]
            bytes_ = above(size) if count < 0 else size
            change += bytes_.times(count // ALIGNMENT) - atom(name).times(count)
        return change

    @staticmethod
    def _with_padding(size: Polynomial) -> Polynomial:
        return size + number(ALIGNMENT - 1)

    @staticmethod
    def _line_by_line(size: Polynomial) -> Polynomial:
        """An upper bound of an aligned size: each of its parts is aligned separately."""
        part = gcd(*(c for _, c in size.terms))
        whole = -(-part // ALIGNMENT) * ALIGNMENT
        return from_terms({m: c // part * whole for m, c in size.terms})


def _upper_bound(sizes: Iterable[Polynomial]) -> Polynomial:
    """An upper bound of `sizes`: each product with its largest coefficient.

    For a product m that may be negative: ``c·m <= low·m + (high - low)·max(0, m)``.
    """
    terms = [dict(size.terms) for size in sizes]
    bound = Polynomial()
    for monomial in sorted({m for t in terms for m in t}):
        product = from_terms({monomial: 1})
        counts = [t.get(monomial, 0) for t in terms]
        low, high = min(counts), max(counts)
        if product.is_nonnegative:
            low, positive = 0, product
        else:
            positive = atom(dims.text(dims.maximum(0, product.dim())))
        bound += product.times(low) + positive.times(high - low)
    return bound
