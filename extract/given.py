"""Values that cost a program nothing to run: they are there, or are made at build time.

How constants are made of each other is decided here, once, by the fewest operators: it is no part
of the choice among kernels, which it would only blow up.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.view import TUPLE_GET, Choice, ClassId, ENode, View
from relax_egraph.extract.cost import BUILD
from relax_egraph.extract.nodes import is_constant, is_operator, is_there
from relax_egraph.ir.folding import GROWTH_LIMIT, is_worth_storing, static_nbytes
from relax_egraph.ir.op import OPS


@dataclass(frozen=True, slots=True)
class Given:
    """How each value that is given is made; `seconds` are for all the operators that takes.

    `spread` are broadcasts of such values: they are not stored, but what is computed elementwise
    of them at build time may be.
    """

    choice: Mapping[ClassId, Choice] = field(default_factory=dict[ClassId, Choice])
    seconds: Mapping[ClassId, float] = field(default_factory=dict[ClassId, float])
    spread: Mapping[ClassId, Choice] = field(default_factory=dict[ClassId, Choice])

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
            choice = self.choice.get(c) or self.spread[c]
            if ready:
                made[c] = choice
                continue
            todo.append((c, True))
            todo.extend((k, False) for k in reversed(choice.inputs))
        return tuple(made.values())


def given_in(view: View, growth_limit: int = GROWTH_LIMIT) -> Given:
    """The classes of `view` that are given.

    What is computed of constants is, as far as it is stored: `growth_limit` says in bytes how much
    larger than its operands it may be.
    """
    there: dict[ClassId, Choice] = {}
    for c, eclass in view.classes.items():
        node = next(filter(is_there, eclass.nodes), None)
        if node is not None:
            there[c] = Choice(node, (), (c,))
    folding = _Folding(view, growth_limit)
    for c in there:
        if is_constant(view.classes[c]):
            folding.stored[c] = _Made(there[c], 0.0)
    folding.run()
    stored = {c: made.choice for c, made in folding.stored.items()}
    return Given(
        {**there, **stored},
        {c: BUILD * made.operators for c, made in folding.stored.items()},
        {c: made.choice for c, made in folding.spread.items() if c not in stored},
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """How a constant is made, by so many operators in all."""

    choice: Choice
    operators: float


class _Folding:
    """The constants that are stored, and the broadcasts of these that are not."""

    def __init__(self, view: View, growth_limit: int) -> None:
        self._classes = view.classes
        self._growth_limit = growth_limit
        self.stored: dict[ClassId, _Made] = {}
        self.spread: dict[ClassId, _Made] = {}

    def run(self) -> None:
        """Make all that can be made, by the fewest operators."""
        nodes = {
            c: [n for n in eclass.nodes if n.op == TUPLE_GET or is_operator(n)]
            for c, eclass in reversed([*self._classes.items()])
            if c not in self.stored and (eclass.sort == "tuple" or is_constant(eclass))
        }
        while any([self._improved(c, node) for c, found in nodes.items() for node in found]):
            pass

    def _improved(self, c: ClassId, node: ENode) -> bool:
        operands = [self._operand(k, node) for k in node.classes]
        known = [made for made in operands if made]
        if len(known) < len(operands):
            return False
        place = self.stored if self._is_stored(c, node) else self.spread
        if place is self.spread and node.op != "broadcast_to":
            return False
        made = _Made(Choice(node, node.classes, (c,)), 1 + sum(m.operators for m in known))
        before = place.get(c)
        if before is not None and before.operators <= made.operators:
            return False
        if self._needs(node, c):
            if before is not None or place is self.spread:
                return False
            # Stored by what it is spread for, it would be made of itself: it stays a broadcast.
            made = _Made(self.spread[c].choice, made.operators)
        place[c] = made
        return True

    def _needs(self, node: ENode, c: ClassId) -> bool:
        """Whether class `c` is among what the operands of `node` are made of."""
        todo, seen = list(node.classes), set[ClassId]()
        while todo:
            k = todo.pop()
            if k == c:
                return True
            if k not in seen:
                seen.add(k)
                todo.extend((self.stored.get(k) or self.spread[k]).choice.inputs)
        return False

    def _operand(self, k: ClassId, node: ENode) -> _Made | None:
        stored = self.stored.get(k)
        elementwise = node.op in OPS and OPS[node.op].elementwise
        return self.spread.get(k) if stored is None and elementwise else stored

    def _is_stored(self, c: ClassId, node: ENode) -> bool:
        """Whether what `node` makes of constants is stored; a tuple is, by its parts."""
        eclass = self._classes[c]
        if node.op == TUPLE_GET or eclass.sort == "tuple":
            return True
        before = sum(map(self._stored_nbytes, node.classes))
        size = static_nbytes(eclass.struct_info)
        return is_worth_storing(node.op, size, before, self._growth_limit)

    def _stored_nbytes(self, k: ClassId) -> int:
        """The bytes of a constant: of a broadcast, those of what it spreads."""
        if k not in self.stored and k in self.spread:
            (k,) = self.spread[k].choice.inputs
        return static_nbytes(self._classes[k].struct_info) or 0
