"""Values that cost a program nothing at run time: inputs, constants, and results of folding.

How one constant is folded from others is decided here, once, by the fewest operators.  It is not
part of the choice among kernels, whose size it would only increase.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.node import TUPLE_GET
from relax_egraph.egraph.view import Choice, ClassId, ENode, View
from relax_egraph.extract.cost import FOLDING, KEPT_BYTE
from relax_egraph.extract.nodes import is_constant, is_leaf, is_operator
from relax_egraph.ir.folding import GROWTH_LIMIT, REPEATS, is_worth_storing, static_nbytes
from relax_egraph.ir.operators import find


@dataclass(frozen=True, slots=True)
class FreeValues:
    """The choice for each free value, and the `seconds` of folding and keeping it.

    `broadcasts` of free values are not stored themselves; elementwise results of them may be.  The
    `small` ones are stored where a program needs them in memory, not repeated by a kernel.
    """

    choices: Mapping[ClassId, Choice] = field(default_factory=dict[ClassId, Choice])
    seconds: Mapping[ClassId, float] = field(default_factory=dict[ClassId, float])
    broadcasts: Mapping[ClassId, Choice] = field(default_factory=dict[ClassId, Choice])
    small: frozenset[ClassId] = frozenset()

    def build_cost(self, classes: Iterable[ClassId]) -> float:
        """The seconds of folding those of `classes` that are constants."""
        return math.fsum(self.seconds.get(c, 0.0) for c in classes)

    def choices_for(self, classes: Iterable[ClassId]) -> tuple[Choice, ...]:
        """The choices that produce those of `classes` that are free, inputs first."""
        ordered: dict[ClassId, Choice] = {}
        todo = [(c, False) for c in reversed(list(classes)) if c in self.choices]
        while todo:
            c, ready = todo.pop()
            if c in ordered:
                continue
            choice = self.choices.get(c) or self.broadcasts[c]
            if ready:
                ordered[c] = choice
                continue
            todo.append((c, True))
            todo.extend((k, False) for k in reversed(choice.inputs))
        return tuple(ordered.values())


def free_values_of(view: View, growth_limit: int = GROWTH_LIMIT) -> FreeValues:
    """The free values of `view`.

    A result of folding is one if it is worth storing: it may be `growth_limit` bytes larger than
    the constants that it is folded from.
    """
    leaves: dict[ClassId, Choice] = {}
    for c, eclass in view.classes.items():
        node = next(filter(is_leaf, eclass.nodes), None)
        if node is not None:
            leaves[c] = Choice(node, (), (c,))
    folding = _Folding(view, growth_limit)
    for c in leaves:
        if is_constant(view.classes[c]):
            folding.stored[c] = _Folded(leaves[c], 0.0)
    folding.run()
    stored = {c: folded.choice for c, folded in folding.stored.items()}
    broadcasts = {c: f.choice for c, f in folding.broadcasts.items() if c not in stored}
    return FreeValues(
        {**leaves, **stored},
        {c: folding.seconds(c) for c in folding.stored},
        broadcasts,
        frozenset(c for c in broadcasts if folding.is_small(c)),
    )


@dataclass(frozen=True, slots=True)
class _Folded:
    """The choice that folds a constant, and the number of operators that this takes in all."""

    choice: Choice
    operators: float


class _Folding:
    """The constants that are stored, and broadcasts of them, which are not."""

    def __init__(self, view: View, growth_limit: int) -> None:
        self._classes = view.classes
        self._growth_limit = growth_limit
        self.stored: dict[ClassId, _Folded] = {}
        self.broadcasts: dict[ClassId, _Folded] = {}

    def run(self) -> None:
        """Fold all that can be folded, each by the fewest operators."""
        nodes = {
            c: [n for n in eclass.nodes if n.op == TUPLE_GET or is_operator(n)]
            for c, eclass in reversed([*self._classes.items()])
            if c not in self.stored and (eclass.sort == "tuple" or is_constant(eclass))
        }
        while any([self._improve(c, node) for c, usable in nodes.items() for node in usable]):
            pass

    def is_small(self, c: ClassId) -> bool:
        """Whether class `c`, a broadcast, may be stored as far as its size goes."""
        size = static_nbytes(self._classes[c].struct_info)
        return is_worth_storing(size, 0, self._growth_limit)

    def seconds(self, c: ClassId) -> float:
        """The seconds of folding and keeping the stored class `c`: none for a leaf."""
        operators = self.stored[c].operators
        size = static_nbytes(self._classes[c].struct_info) if operators else 0
        return FOLDING * operators + KEPT_BYTE * (size or 0)

    def _improve(self, c: ClassId, node: ENode) -> bool:
        """Fold class `c` by `node` if that takes fewer operators; whether it does."""
        operands = [self._operand(k, node) for k in node.operands]
        known = [folded for folded in operands if folded]
        if len(known) < len(operands):
            return False
        place = self.stored if self._is_stored(c, node) else self.broadcasts
        if place is self.broadcasts and node.op != "broadcast_to":
            return False
        folded = _Folded(Choice(node, node.operands, (c,)), 1 + sum(f.operators for f in known))
        before = place.get(c)
        if before is not None and before.operators <= folded.operators:
            return False
        if self._depends(node, c):
            if before is not None or place is self.broadcasts:
                return False
            # Folded by `node`, the class would depend on itself: it is stored as its broadcast.
            folded = _Folded(self.broadcasts[c].choice, folded.operators)
        place[c] = folded
        return True

    def _depends(self, node: ENode, c: ClassId) -> bool:
        """Whether the operands of `node` are folded from class `c`."""
        todo, seen = list(node.operands), set[ClassId]()
        while todo:
            k = todo.pop()
            if k == c:
                return True
            if k not in seen:
                seen.add(k)
                todo.extend((self.stored.get(k) or self.broadcasts[k]).choice.inputs)
        return False

    def _operand(self, k: ClassId, node: ENode) -> _Folded | None:
        stored = self.stored.get(k)
        op = find(node.op)
        elementwise = op is not None and op.elementwise
        return self.broadcasts.get(k) if stored is None and elementwise else stored

    def _is_stored(self, c: ClassId, node: ENode) -> bool:
        """Whether the result of folding `node` is stored; a tuple is, by its fields."""
        eclass = self._classes[c]
        if node.op == TUPLE_GET or eclass.sort == "tuple":
            return True
        before = sum(map(self._stored_nbytes, node.operands))
        size = static_nbytes(eclass.struct_info)
        is_repeated = node.op in REPEATS
        return is_worth_storing(size, before, self._growth_limit, is_repeated=is_repeated)

    def _stored_nbytes(self, k: ClassId) -> int:
        """The bytes of a constant; of a broadcast, those of its operand."""
        if k not in self.stored and k in self.broadcasts:
            (k,) = self.broadcasts[k].choice.inputs
        return static_nbytes(self._classes[k].struct_info) or 0
