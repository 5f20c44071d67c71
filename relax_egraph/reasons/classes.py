"""The parts of saturated e-graphs that a reader may ask for: what a result is made of, and around.

An e-graph has thousands of nodes, so what is shown is bounded, and says so.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.egraph.view import ClassId, ENode, View
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Var
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, shape_text
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.reasons.chosen import chosen_nodes

MOST_CLASSES = 600
"""Classes that are shown, of all e-graphs together."""

MOST_NODES = 24
"""Nodes that are shown of one class; the one that was chosen is among them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An e-graph: classes to begin with, and the names that values have in the source."""

    region: RegionReport
    begin: Sequence[ClassId]
    names: Mapping[ClassId, Sequence[str]]


def classes_of(asked: Sequence[Asked]) -> dict[str, Any]:
    """The classes to begin with, then those that they are made of, level by level.

    A class is named by the number of its e-graph and its own: ``0.17``.
    """
    graphs = [_Graph(number, one) for number, one in enumerate(asked)]
    todo = deque((graph, c) for graph in graphs for c in graph.asked.begin)
    found: dict[str, dict[str, Any]] = {}
    while todo and len(found) < MOST_CLASSES:
        graph, c = todo.popleft()
        if graph.name(c) in found:
            continue
        found[graph.name(c)] = graph.told(c)
        todo.extend((graph, k) for node in graph.shown(c) for k in node.operands)
    return {
        "classes": list(found.values()),
        "of": sum(len(graph.view.classes) for graph in graphs),
        "most_classes": MOST_CLASSES,
        "most_nodes": MOST_NODES,
    }


class _Graph:
    """One e-graph, and what was chosen of it."""

    def __init__(self, number: int, asked: Asked) -> None:
        self.asked = asked
        self.view: View = asked.region.view
        self._number = number
        self._chosen = chosen_nodes(self.view, asked.region.extraction.program)

    def name(self, c: ClassId) -> str:
        return f"{self._number}.{c}"

    def shown(self, c: ClassId) -> tuple[ENode, ...]:
        """The nodes of a class that are shown, the one that was chosen first."""
        nodes = self.view.classes[c].nodes
        chosen = self._chosen.get(c)
        if chosen is not None:
            nodes = (nodes[chosen], *nodes[:chosen], *nodes[chosen + 1 :])
        return nodes[:MOST_NODES]

    def told(self, c: ClassId) -> dict[str, Any]:
        eclass = self.view.classes[c]
        shown = self.shown(c)
        return {
            "class": self.name(c),
            "sort": eclass.sort,
            "type": "" if eclass.sort == "tuple" else type_text(eclass.struct_info),
            "const": eclass.is_const,
            "names": list(self.asked.names.get(c, ())),
            "chosen": c in self._chosen,
            "nodes": [
                {"text": self._text(node), "classes": [self.name(k) for k in node.operands]}
                for node in shown
            ],
            "more": len(eclass.nodes) - len(shown),
        }

    def _text(self, node: ENode) -> str:
        """A node as an operator on classes: ``add(c4, c7)``."""
        match node.op:
            case "leaf":
                return leaf_text(self.view.leaves[node.key])
            case "scalar":
                return f"{node.scalar:g}"
            case "opaque":
                return f"{self.view.opaque[node.key].var.name} as it is"
            case "load" | "store":
                return f"{node.op} {self._child(node.operands[0])}"
            case op:
                attrs = (f"{name}={value}" for name, value in node.attrs)
                return f"{op}({', '.join((*map(self._child, node.children), *attrs))})"

    def _child(self, child: Any) -> str:
        match child:
            case int():
                return f"c{child}"
            case tuple():
                parts: Iterable[Any] = child
                return f"[{', '.join(map(self._child, parts))}]"
            case ShapeStructInfo(values=values):
                return f"({', '.join(map(str, values or ()))})"
            case PrimValue(value=value):
                return str(value)
            case _:
                return str(child)


def type_text(info: TensorStructInfo) -> str:
    """A shape and a dtype: ``(n, 64) float32``."""
    shape = "…" if info.dims is None else shape_text(info.dims)
    return f"{shape} {info.dtype or ''}".rstrip()


def leaf_text(value: Expr) -> str:
    """What comes from outside: a variable's name, a number, or a constant's shape."""
    match value:
        case Var(name=name):
            return name
        case Constant(data=data) if data.size == 1:
            return f"{data.flat[0]}"
        case Constant(struct_info=TensorStructInfo() as info):
            return f"constant {type_text(info)}"
        case _:
            return str(value)
