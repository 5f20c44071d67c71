"""A random instance of an operator, and the source of randomness for instances."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias, TypeVar

import numpy as np

from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.ir.expr import Attr

T = TypeVar("T")
Array: TypeAlias = np.ndarray[Any, Any]

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
ANY = (*NUMBERS, "bool")

EXTENTS = (0, 1, 1, 2, 3, 3, 4, 5, 7)


@dataclass(frozen=True, slots=True)
class Case:
    """Operands and attributes that an operator accepts.

    An array is a tensor, a tuple of ints a shape, a tuple of arrays a tuple of tensors, an int or
    float a Python number; trailing operands may be absent.  `error` is the error that a kernel may
    have, relative to the largest element of the result and at least to 1: by default a few units in
    the last place.
    """

    operands: tuple[Any, ...]
    attrs: Mapping[str, Attr] = field(default_factory=dict[str, Attr])
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws the parts of instances."""

    random: Random

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`."""
        return self.random.choice(items)

    def chance(self, p: float = 0.5) -> bool:
        """True with probability `p`."""
        return self.random.random() < p

    def integer(self, least: int, most: int) -> int:
        """An int, both ends included."""
        return self.random.randint(least, most)

    def extent(self, least: int = 0) -> int:
        """An extent of at least `least`: 0, 1, odd and even ones."""
        return self.random.choice([e for e in EXTENTS if e >= least] or [least])

    def shape(self, least: int = 0, most: int = 3, extent: int = 0) -> tuple[int, ...]:
        """A shape of rank `least` to `most`, with extents of at least `extent`."""
        return tuple(self.extent(extent) for _ in range(self.integer(least, most)))

    def part(self, whole: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to `whole`."""
        kept = whole[self.integer(0, len(whole)) :]
        return tuple(1 if self.chance(0.3) else d for d in kept)

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int) -> tuple[int, ...]:
        """Distinct axes, in any order, some counted from the end."""
        chosen = self.random.sample(range(rank), self.integer(0, rank))
        return tuple(a - rank if self.chance(0.3) else a for a in chosen)

    def array(
        self, shape: Sequence[int], dtype: str = "float32", low: float = -3, high: float = 3
    ) -> Array:
        """Numbers between `low` and `high` (from 0, if `dtype` is unsigned); booleans."""
        rng = np.random.default_rng(self.random.getrandbits(32))
        if dtype == "bool":
            return np.asarray(rng.random(tuple(shape)) < 0.5)
        if is_float(dtype):
            return np.asarray(rng.uniform(low, high, tuple(shape))).astype(dtype)
        first = int(low) if is_signed(dtype) else max(int(low), 0)
        return np.asarray(rng.integers(first, int(high), tuple(shape), endpoint=True)).astype(dtype)


Sampler: TypeAlias = Callable[[Draw], Case]


def elementwise(
    count: int, dtypes: Sequence[str], low: float = -3, high: float = 3, **attrs: Attr
) -> Sampler:
    """Instances with `count` operands of one dtype that broadcast to one shape."""

    def sample(draw: Draw) -> Case:
        whole, dtype = draw.shape(), draw.choice(dtypes)
        shapes = [whole, *(draw.part(whole) for _ in range(count - 1))]
        draw.random.shuffle(shapes)
        return Case(tuple(draw.array(s, dtype, low, high) for s in shapes), attrs)

    return sample
