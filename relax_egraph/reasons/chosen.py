"""Which nodes of an e-graph a program is made of, those inside of its kernels among them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.node import LOAD, STORE, Node
from relax_egraph.egraph.view import Choice, ClassId, ENode, View
from relax_egraph.ir.kernel import Kernel


def chosen_nodes(view: View, program: Iterable[Choice]) -> Mapping[ClassId, int]:
    """By class the place of the node that `program` makes it by; of a class of two, the first."""
    found: dict[ClassId, int] = {}
    for choice in program:
        if isinstance(choice.how, Node):
            (made,) = choice.outputs
            nodes = view.classes[made].nodes
            if choice.how in nodes:
                found.setdefault(made, nodes.index(choice.how))
            continue
        within = _Within(view, choice.how, choice.inputs)
        for value, made in zip(choice.how.outputs, choice.outputs, strict=True):
            for c, place in (within.path(value, made) or {}).items():
                found.setdefault(c, place)
    return found


@dataclass(slots=True)
class _Within:
    """Finds the nodes that a kernel was cut from: its values are numbers, its inputs classes."""

    view: View
    kernel: Kernel
    inputs: tuple[ClassId, ...]
    _known: dict[tuple[int, ClassId], dict[ClassId, int] | None] = field(
        default_factory=dict[tuple[int, ClassId], "dict[ClassId, int] | None"]
    )

    def path(self, value: int, c: ClassId) -> dict[ClassId, int] | None:
        """The nodes by which class `c` is `value`; ``None`` if it is not."""
        if value < len(self.inputs) and self.inputs[value] == c:
            return {}
        if (value, c) not in self._known:
            self._known[value, c] = None  # a cycle of loads and stores makes nothing
            paths = (self._by(place, node, value, c) for place, node in self._nodes(c))
            self._known[value, c] = next((p for p in paths if p is not None), None)
        return self._known[value, c]

    def _nodes(self, c: ClassId) -> Iterable[tuple[int, ENode]]:
        return enumerate(self.view.classes[c].nodes)

    def _by(self, place: int, node: ENode, value: int, c: ClassId) -> dict[ClassId, int] | None:
        step = self.kernel.step(value)
        if node.op == STORE and step is not None:
            pairs = [(value, node.operands[0])]
        elif node.op == LOAD and step is None:
            return {c: place} if node.operands == (self.inputs[value],) else None
        elif step is not None and node.op == step.op.name and node.attrs == step.attrs:
            if len(node.operands) != len(step.values):
                return None
            pairs = list(zip(step.values, node.operands, strict=True))
        else:
            return None
        found = {c: place}
        for below, k in pairs:
            path = self.path(below, k)
            if path is None:
                return None
            found.update(path)
        return found
