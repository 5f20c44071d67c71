"""The left operand of a product: its numbers, each in all lanes.

A processor with multiply-adds by lane takes a number from any lane of a register: a vector holds
the numbers of several steps of the depth, if they are adjacent.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, Type
from relax_egraph.lower.emit.vector import shuffle

Read = Callable[[Value], list[Value]]
"""Reads the numbers of one step of the depth, at an index: one for each row."""


def factor(pointer: Value, lanes: int, element: Type = F32) -> Value:
    """The number at `pointer`, of type `element`, in all `lanes`."""
    f = pointer.function
    number = f.load(pointer, element)
    if f.module.target.multiplies_by_lane and element.is_float:
        # Without the fence, LLVM loads to all lanes, which takes a vector unit.
        number = f.intrinsic("arithmetic.fence", number, flags="")
    return f.splat(number, lanes)


def added(
    numbers: Iterable[Value], terms: Sequence[Value], sums: Sequence[Value], lanes: int
) -> list[Value]:
    """`sums` plus the float at each of `numbers` times each of the vectors `terms`."""
    factors = [factor(place, lanes) for place in numbers]
    pairs = ((x, t) for x in factors for t in terms)
    return [x.function.fma(x, t, total) for (x, t), total in zip(pairs, sums, strict=True)]


@dataclass(frozen=True, slots=True)
class Left:
    """Rows that begin at `rows`, with `step` elements from one step of the depth to the next.

    Each number is wanted in `lanes` lanes, of type `element`.
    """

    rows: Sequence[Value]
    step: Value
    lanes: int
    element: Type

    @property
    def steps(self) -> int:
        """The steps that are best read at once."""
        return self.lanes if self._by_lane else 1

    def whole(self, depth: Value, steps: int) -> Value:
        """The part of `depth` that `reads` can read in whole `steps`."""
        f = depth.function
        whole = depth - f.binary("urem", depth, steps)
        return f.select(f.compare("==", self.step, 1), whole, 0) if self._by_lane else whole

    def reads(self, at: Value, steps: int) -> list[Read]:
        """The functions that read the numbers of `steps` steps, the first of which is at `at`.

        By lane, `steps` are those of some whole vectors.
        """
        if not self._by_lane:
            return [self.read] * steps
        f, type = at.function, self.element.of(self.lanes)
        vectors = [
            [f.load(f.address(row, at + first, self.element), type) for row in self.rows]
            for first in range(0, steps, self.lanes)
        ]

        def lane(number: int) -> Read:
            place, own = number % self.lanes, vectors[number // self.lanes]
            return lambda _: [shuffle(v, v, [place] * self.lanes) for v in own]

        return [lane(k) for k in range(steps)]

    def read(self, at: Value) -> list[Value]:
        """The numbers of the rows at index `at`."""
        f, lanes, element = at.function, self.lanes, self.element
        return [factor(f.address(row, at, element), lanes, element) for row in self.rows]

    @property
    def _by_lane(self) -> bool:
        return self.step.function.module.target.multiplies_by_lane
