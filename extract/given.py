"""Values that cost a program nothing to run: they are there, or are made at build time.

How constants are made of each other is decided here, once, by the fewest operators: it is no part
of the choice among kernels, which it would only blow up.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.view import Choice, ClassId, ENode, View
from relax_egraph.extract.cost import BUILD
from relax_egraph.extract.nodes import is_folded, is_there


@dataclass(frozen=True, slots=True)
class Given:
    """How each value that is given is made; `seconds` are for all the operators that takes."""

    choice: Mapping[ClassId, Choice] = field(default_factory=dict[ClassId, Choice])
    seconds: Mapping[ClassId, float] = field(default_factory=dict[ClassId, float])

    def building(self, classes: Iterable[ClassId]) -> float:
        """The seconds of those of `classes` that are given."""
        return math.fsum(self.seconds.get(c, 0.0) for c in classes)

    def needed(self, classes: Iterable[ClassId]) -> tuple[Choice, ...]:
        """The choices that make those of `classes` that are given, inputs first."""
        made: dict[ClassId, Choice] = {}
        todo = [(c, False) for c in reversed(list(classes)) if c in self.choice]
        while todo:
            c, ready = todo.pop()
            if c in made:
                continue
            if ready:
                made[c] = self.choice[c]
                continue
            todo.append((c, True))
            todo.extend((k, False) for k in reversed(self.choice[c].inputs))
        return tuple(made.values())


def given_in(view: View, nodes: Mapping[ClassId, tuple[ENode, ...]]) -> Given:
    """The classes among `nodes` (the usable ones of each class) that are given."""
    choice: dict[ClassId, Choice] = {}
    count: dict[ClassId, float] = {}
    folded: list[ClassId] = []
    for c, found in nodes.items():
        if found and is_there(found[0]):
            choice[c], count[c] = Choice(found[0], (), (c,)), 0.0
        elif view.classes[c].sort != "kernel" and is_folded(view.classes, c):
            folded.append(c)
    changed = True
    while changed:
        changed = False
        for c in reversed(folded):
            for node in nodes[c]:
                operators = 1 + sum(count.get(k, math.inf) for k in node.classes)
                if operators < count.get(c, math.inf):
                    choice[c], count[c] = Choice(node, node.classes, (c,)), operators
                    changed = True
    return Given(choice, {c: BUILD * number for c, number in count.items()})
