"""Saturated e-graphs as data for a page: the classes of the result and the classes around them.

An e-graph has thousands of nodes, so classes and nodes are bounded, and the page says so.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.egraph.node import LEAF, LOAD, OPAQUE, SCALAR, STORE, Node
from relax_egraph.egraph.view import ClassId, EClass, ENode, View
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Var
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, shape_text
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.reasons.chosen import chosen_nodes

MOST_CLASSES = 600
"""The most classes on a page, of all e-graphs together."""

MOST_NODES = 24
"""The most nodes of one class on a page; the chosen node is among them."""


@dataclass(frozen=True, slots=True)
class ClassQuery:
    """An e-graph, the classes to begin with, and the names of its values in the source."""

    region: RegionReport
    begin: Sequence[ClassId]
    names: Mapping[ClassId, Sequence[str]]


def classes_of(queries: Sequence[ClassQuery]) -> dict[str, Any]:
    """The classes to begin with, then their operands, breadth first.

    The name of a class has the number of its e-graph and its own number: ``0.17``.
    """
    graphs = [_Graph(number, query) for number, query in enumerate(queries)]
    todo = deque((graph, c) for graph in graphs for c in graph.query.begin)
    classes: dict[str, dict[str, Any]] = {}
    while todo and len(classes) < MOST_CLASSES:
        graph, c = todo.popleft()
        if graph.name(c) in classes:
            continue
        classes[graph.name(c)] = graph.as_dict(c)
        todo.extend((graph, k) for node in graph.shown(c) for k in node.operands)
    return {
        "classes": list(classes.values()),
        "of": sum(len(graph.view.classes) for graph in graphs),
        "most_classes": MOST_CLASSES,
        "most_nodes": MOST_NODES,
    }


class _Graph:
    """One e-graph, and the nodes that extraction chose."""

    def __init__(self, number: int, query: ClassQuery) -> None:
        self.query = query
        self.view: View = query.region.view
        self._number = number
        self._chosen = chosen_nodes(self.view, query.region.extraction.program)

    def name(self, c: ClassId) -> str:
        return f"{self._number}.{c}"

    def shown(self, c: ClassId) -> tuple[ENode, ...]:
        """The first nodes of a class, the chosen node before all others."""
        nodes = self.view.classes[c].nodes
        chosen = self._chosen.get(c)
        if chosen is not None:
            nodes = (nodes[chosen], *nodes[:chosen], *nodes[chosen + 1 :])
        return nodes[:MOST_NODES]

    def as_dict(self, c: ClassId) -> dict[str, Any]:
        """Class `c` as plain data."""
        eclass = self.view.classes[c]
        shown = self.shown(c)
        return {
            "class": self.name(c),
            "sort": eclass.sort,
            "type": class_type_text(eclass),
            "const": eclass.is_const,
            "names": list(self.query.names.get(c, ())),
            "chosen": c in self._chosen,
            "nodes": [
                {"text": self._text(node), "classes": [self.name(k) for k in node.operands]}
                for node in shown
            ],
            "more": len(eclass.nodes) - len(shown),
        }

    def _text(self, node: ENode) -> str:
        """A node as an operator on classes: ``add(c4, c7)``."""
        if (text := source_text(self.view, node)) is not None:
            return text
        if node.op in (LOAD, STORE):
            return f"{node.op} {self._child(node.operands[0])}"
        attrs = (f"{name}={value}" for name, value in node.attrs)
        return f"{node.op}({', '.join((*map(self._child, node.children), *attrs))})"

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


def class_type_text(eclass: EClass) -> str:
    """The type of a class; empty for a tuple."""
    return "" if eclass.sort == "tuple" else type_text(eclass.struct_info)


def source_text(view: View, node: Node[Any]) -> str | None:
    """The text of a leaf, a scalar or an opaque binding; ``None`` for other nodes."""
    match node.op:
        case op if op == LEAF:
            return leaf_text(view.leaves[node.key])
        case op if op == SCALAR:
            return f"{node.scalar:g}"
        case op if op == OPAQUE:
            return f"{view.opaque[node.key].var.name} as it is"
        case _:
            return None


def leaf_text(value: Expr) -> str:
    """The text of a leaf: a variable's name, a number, or a constant's shape and dtype."""
    match value:
        case Var(name=name):
            return name
        case Constant(data=data) if data.size == 1:
            return f"{data.flat[0]}"
        case Constant(struct_info=TensorStructInfo() as info):
            return f"constant {type_text(info)}"
        case _:
            return str(value)
