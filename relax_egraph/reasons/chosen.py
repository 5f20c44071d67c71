"""The nodes of an e-graph that an extracted program uses, the nodes inside its kernels included."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.node import LOAD, STORE, Node
from relax_egraph.egraph.view import Choice, ClassId, ENode, View
from relax_egraph.ir.kernel import Kernel


def chosen_nodes(view: View, program: Iterable[Choice]) -> Mapping[ClassId, int]:
    """By class, the index of the node that `program` computes it by; the first, if by several."""
    places: dict[ClassId, int] = {}
    for choice in program:
        if isinstance(choice.how, Node):
            (output,) = choice.outputs
            nodes = view.classes[output].nodes
            if choice.how in nodes:
                places.setdefault(output, nodes.index(choice.how))
            continue
        within = _Within(view, choice.how, choice.inputs)
        for value, output in zip(choice.how.outputs, choice.outputs, strict=True):
            for c, place in (within.path(value, output) or {}).items():
                places.setdefault(c, place)
    return places


@dataclass(slots=True)
class _Within:
    """Finds the nodes that a kernel was cut from, given the classes of its inputs."""

    view: View
    kernel: Kernel
    inputs: tuple[ClassId, ...]
    _known: dict[tuple[int, ClassId], dict[ClassId, int] | None] = field(
        default_factory=dict[tuple[int, ClassId], "dict[ClassId, int] | None"]
    )

    def path(self, value: int, c: ClassId) -> dict[ClassId, int] | None:
        """The nodes by which class `c` computes `value` of the kernel, or ``None``."""
        if value < len(self.inputs) and self.inputs[value] == c:
            return {}
        if (value, c) not in self._known:
            self._known[value, c] = None  # a cycle of loads and stores computes nothing
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
        places = {c: place}
        for below, k in pairs:
            path = self.path(below, k)
            if path is None:
                return None
            places.update(path)
        return places
