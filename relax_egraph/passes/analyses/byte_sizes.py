"""Sizes and offsets in bytes, and what is proven of them for all values of their symbols.

Of all that a plan compares few are different: each question is answered once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.polynomial import Polynomial, atom, from_terms, number

ALIGNMENT = 64
"""Offsets are multiples of so many bytes."""

SAMPLE = 128
"""What a symbol is taken for in a guess."""

MOST_PARTS = 8
"""How many offsets, none of which is proven the largest, one is the largest of."""


@dataclass(frozen=True, slots=True)
class Extent:
    """An offset, or the end of something: the largest of `parts`; 0 without any."""

    parts: tuple[Polynomial, ...] = ()

    def dim(self) -> Dim:
        """The dimension that this is."""
        return dims.maximum(*(p.dim() for p in self.parts)) if self.parts else 0

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value with the symbols at `values`."""
        return max((p.evaluate(values) for p in self.parts), default=0)


class ByteSizes:
    """Answers for one plan."""

    def __init__(self) -> None:
        self._guesses: dict[Polynomial, int] = {}
        self._answers: dict[tuple[Polynomial, Polynomial], bool] = {}
        self._ends: dict[tuple[Extent, Polynomial], Extent] = {}
        self._aligned: dict[Polynomial, Polynomial] = {}
        self._lines: dict[str, Polynomial] = {}

    def guess(self, extent: Extent) -> int:
        """What `extent` is if every symbol is `SAMPLE`."""
        return max(map(self.guessed_size, extent.parts), default=0)

    def guessed_size(self, size: Polynomial) -> int:
        """What `size` is if every symbol is `SAMPLE`."""
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
        """The first multiple of `ALIGNMENT` after `size` bytes at `offset`, which is one."""
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
        """The largest of `extents`, or a little more."""
        largest = self.largest(dict.fromkeys(p for e in extents for p in e.parts))
        return Extent(tuple(largest) if len(largest) <= MOST_PARTS else (_upper_bound(largest),))

    # --- proofs -----------------------------------------------------------------------

    def largest(self, sizes: Iterable[Polynomial]) -> list[Polynomial]:
        """Those of `sizes` that are not proven to be at most another one."""
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
        """Whether `value` is proven to be 0 or more, with what is known of aligned sizes."""
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
        """What a sum loses where aligned sizes are replaced by what they are at least or at most.

        Each atom is a number of lines; those subtracted are at most what `above` says in bytes.
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
        """As if each part of a size, which is a multiple of one number, were aligned by itself."""
        part = gcd(*(c for _, c in size.terms))
        whole = -(-part // ALIGNMENT) * ALIGNMENT
        return from_terms({m: c // part * whole for m, c in size.terms})


def _upper_bound(sizes: Iterable[Polynomial]) -> Polynomial:
    """What none of `sizes` exceeds: each product as often as the one that has the most of it.

    Of a product m that may be negative: ``c·m <= low·m + (high - low)·max(0, m)``.
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
