"""A first program, which tells what to make by one kernel.

Each class is made by the way that looks cheapest with its part of making what it needs.  That
is not the best program, but it shows what is in memory, who reads it, and what waits for what.
"""

from dataclasses import dataclass, field

from relax_egraph.egraph.view import ClassId, View
from relax_egraph.extract.ways import Way, Ways


@dataclass(frozen=True, slots=True)
class First:
    """The way of each class that is made, inputs first, and how the classes hang together.

    `readers` are the classes whose ways read a class; `level` is the length of the longest chain
    of ways that ends at a class.  Of a class `below` are, as bits, all that making it takes.
    """

    ways: dict[ClassId, Way] = field(default_factory=dict[ClassId, Way])
    readers: dict[ClassId, list[ClassId]] = field(default_factory=dict[ClassId, list[ClassId]])
    level: dict[ClassId, int] = field(default_factory=dict[ClassId, int])
    bit: dict[ClassId, int] = field(default_factory=dict[ClassId, int])
    below: dict[ClassId, int] = field(default_factory=dict[ClassId, int])

    def needs(self, c: ClassId, other: ClassId) -> bool:
        """Whether making `c` is or takes making `other`."""
        return c == other or bool(self.below.get(c, 0) & self.bit.get(other, 0))

    def append(self, c: ClassId, way: Way) -> None:
        """Make class `c` by `way`; its inputs are there already, but for given ones."""
        self.bit[c] = 1 << len(self.bit)
        self.level[c], self.below[c] = 0, self.bit[c]
        for d in dict.fromkeys(way.choice.inputs):
            self.readers.setdefault(d, []).append(c)
            self.level[c] = max(self.level[c], 1 + self.level.get(d, 0))
            self.below[c] |= self.below.get(d, 0)
        self.ways[c] = way


def first_program(view: View, ways: Ways) -> First:
    """The ways that look cheapest, from the roots on.

    Where they need each other in a circle, one of the needs is overlooked.
    """

    def total(way: Way) -> float:
        return way.cost + sum([ways.making[k] for k in way.choice.inputs])

    first = First()
    entered: dict[ClassId, Way] = {}
    stack = [root for root in reversed(view.roots) if ways.of.get(root)]
    while stack:
        c = stack[-1]
        if c not in entered:
            entered[c] = min(ways.of[c], key=total)
            inputs = entered[c].choice.inputs
            stack.extend(d for d in reversed(inputs) if ways.of.get(d) and d not in entered)
        else:
            stack.pop()
            if c not in first.ways:
                first.append(c, entered[c])
    return first
