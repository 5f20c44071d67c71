"""Saturated e-graphs as boxes: a box for each class, a row for each way to compute it.

Kernels are unfolded: what a fused kernel computes is drawn as operators, in the colour of the
kernel.  The chosen program has marked rows; the other rows are alternatives.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from relax_egraph.egraph.encoding.constructors import argument_text, constructor_of
from relax_egraph.egraph.node import LEAF, SCALAR
from relax_egraph.egraph.view import ClassId, ENode, View
from relax_egraph.ir.message import counted
from relax_egraph.ir.struct_info import shape_text
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.pictures.boxes import Box, Diagram, Row
from relax_egraph.reasons.classes import class_type_text, source_text
from relax_egraph.reasons.explain import Reasons
from relax_egraph.reasons.tensors import Chosen, chosen_of, nodes_of, tensors_of

MOST_CLASSES = 80
"""The most classes of one e-graph in a picture: those closest to its results."""

MOST_NODES = 8
"""The most nodes of one class in a picture; the chosen node is among them."""


def egraph_diagrams(
    reasons: Reasons, only: Sequence[Collection[ClassId]] | None = None
) -> list[Diagram]:
    """A diagram for each of ``reasons.egraphs``.

    `only` has the classes to draw of each; others are named in rows.
    """
    return [
        _Drawn(reasons, region, None if only is None else only[number]).diagram()
        for number, region in enumerate(reasons.egraphs)
    ]


class _Drawn:
    """One e-graph."""

    def __init__(
        self, reasons: Reasons, region: RegionReport, only: Collection[ClassId] | None
    ) -> None:
        self.region = region
        self.view: View = region.view
        self.nodes = nodes_of(self.view)
        self.tensors = tensors_of(self.view)
        here = (
            (number if one.is_fused else None, one)
            for number, one in enumerate(reasons.running)
            if one.placed.region.view is self.view
        )
        self.chosen: Mapping[ClassId, Chosen] = chosen_of(self.view, here)
        self.names = self._names(reasons)
        self.roots = list(dict.fromkeys(self.tensors[root] for root in self.view.roots))
        self.shown = self._reached(only)[:MOST_CLASSES]
        self.number = {c: k for k, c in enumerate(self.shown)}

    def diagram(self) -> Diagram:
        """Boxes in the order in which results reach them."""
        every = len(self.nodes)
        size = counted(every, "class", "classes")
        if len(self.shown) < every:
            size = f"{len(self.shown)} of {size}"
        nodes = sum(map(len, self.nodes.values()))
        caption = f"{self.region.function}: {size}, {counted(nodes, 'node')}"
        return Diagram(caption, [self._box(c) for c in self.shown])

    def _box(self, c: ClassId) -> Box:
        chosen = self.chosen.get(c)
        nodes = list(self.nodes[c])
        if chosen is not None and chosen.node in nodes:
            nodes.remove(chosen.node)
            nodes.insert(0, chosen.node)
        rows = [
            Row(
                ("● " if is_chosen else "  ") + self._text(node),
                tuple(dict.fromkeys(self.number[k] for k in node.operands if k in self.number)),
                marked=is_chosen or (chosen is None and place == 0),
            )
            for place, node in enumerate(nodes[:MOST_NODES])
            for is_chosen in [chosen is not None and node == chosen.node]
        ]
        if len(nodes) > MOST_NODES:
            rows.append(Row(f"  … {len(nodes) - MOST_NODES} more", marked=False))
        kernel = chosen.kernel if chosen else None
        return Box(
            self._name(c),
            class_type_text(self.view.classes[c]),
            tuple(rows),
            tone=kernel,
            result=c in self.roots,
            note=", ".join(self.names.get(c, ())),
        )

    def _text(self, node: ENode) -> str:
        if (text := source_text(self.view, node)) is not None:
            return text
        constructor = constructor_of(node.op)
        parts = (self._argument(p.sort, arg) for p, arg in constructor.arguments(node))
        return " ".join((constructor.head, *parts))

    def _argument(self, sort: str, argument: Any) -> str:
        """In the notation of rules, but for shapes, whose dimensions are listed."""
        if sort == "Shape" and argument.values is not None:
            return shape_text(argument.values)
        return argument_text(sort, argument, self._name)

    def _name(self, c: Any) -> str:
        """The name of a class: that of a value of the program, or its number."""
        named = self.names.get(c)
        if named:
            return named[0]
        leaf = next((n for n in self.nodes[c] if n.op in (LEAF, SCALAR)), None)
        text = "" if leaf is None else self._text(leaf)
        return text if text and " " not in text else f"${c}"

    def _names(self, reasons: Reasons) -> Mapping[ClassId, tuple[str, ...]]:
        placed = next((p for p in reasons.placed if p.region.view is self.view), None)
        names: dict[ClassId, dict[str, None]] = {}
        for var, c in placed.origin.items() if placed else ():
            if (now := self.region.became.get(c)) is not None and now in self.tensors:
                names.setdefault(self.tensors[now], {})[var.name] = None
        return {c: tuple(each) for c, each in names.items()}

    def _reached(self, only: Collection[ClassId] | None) -> list[ClassId]:
        """The classes from the results to their operands, breadth first."""
        wanted = None if only is None else {self.tensors[c] for c in only if c in self.tensors}
        seen = dict.fromkeys(self.roots)
        todo = deque(seen)
        while todo:
            c = todo.popleft()
            chosen = self.chosen.get(c)
            first = [] if chosen is None else [chosen.node]
            for node in (*first, *self.nodes[c]):
                fresh = [k for k in node.operands if k not in seen]
                seen.update(dict.fromkeys(fresh))
                todo += fresh
        return [c for c in seen if wanted is None or c in wanted]
