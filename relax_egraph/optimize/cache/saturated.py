"""A saturated view as what JSON can hold, and back."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Any, get_args

from relax_egraph.egraph.engine import Ban, PhaseReport, Report, Saturated, StopReason
from relax_egraph.egraph.node import (
    LEAF,
    LOAD,
    OPAQUE,
    SCALAR,
    STORE,
    TUPLE_GET,
    WHOLE,
    Child,
    Node,
    Sort,
    leaf_node,
    scalar_node,
)
from relax_egraph.egraph.view import ClassId, EClass, ENode, View
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.operators import find
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.optimize.cache.values import (
    Data,
    Infos,
    attrs_data,
    attrs_of,
    check,
    infos_of,
    of_type,
    prim_data,
    prim_of,
    shape_data,
    shape_of,
    whole,
)

_SORTS = get_args(Sort)
_OTHERS = (LEAF, SCALAR, OPAQUE, LOAD, STORE, TUPLE_GET, WHOLE)
"""The nodes that are no operators."""


def saturated_data(saturated: Saturated) -> Data:
    """`saturated` without the leaves and opaque bindings of its view."""
    view, infos = saturated.view, Infos()
    classes = [
        [
            *(number, c.sort, [node_data(node) for node in c.nodes]),
            *(infos.number(c.struct_info), c.is_const, c.scalar, c.narrow, c.magnitude),
        ]
        for number, c in view.classes.items()
    ]
    return {
        "classes": classes,
        "infos": infos.data(),
        "became": list(saturated.became.items()),
        "report": asdict(saturated.report),
    }


def saturated_of(data: Data, loaded: View) -> Saturated:
    """What was written, over the leaves and opaque bindings of `loaded`, which was saturated."""
    infos = infos_of(data["infos"])
    numbers = {of_type(int, row[0]) for row in data["classes"]}
    read = Nodes(numbers, loaded)
    classes: dict[ClassId, EClass] = {}
    for number, sort, nodes, info, is_const, scalar, narrow, most in data["classes"]:
        check(sort in _SORTS and all(type(n) in (float, type(None)) for n in (scalar, most)))
        classes[number] = EClass(
            sort,
            tuple(read.node(*row) for row in nodes),
            infos[whole(info)],
            of_type(bool, is_const),
            scalar,
            tuple((of_type(str, dtype), of_type(int, axis)) for dtype, axis in narrow),
            most,
        )
    became = {loaded_class: of_type(int, now) for loaded_class, now in data["became"]}
    check(loaded.classes.keys() >= became.keys() and numbers.issuperset(became.values()))
    roots = tuple(became[root] for root in loaded.roots)
    view = View(classes, roots, loaded.leaves, loaded.opaque)
    return Saturated(view, _report(**data["report"]), became)


def node_data(node: ENode) -> Data:
    """`node`; the numbers of its classes are those of the view."""
    children = list(map(_child_data, node.children))
    return [node.op, children, attrs_data(node.attrs)]


def _child_data(child: Child[ClassId]) -> Data:
    match child:
        case ShapeStructInfo():
            return shape_data(child)
        case PrimValue():
            return prim_data(child)
        case _:
            return child


class Nodes:
    """Reads nodes over the classes `numbers`, and the leaves and opaque bindings of `view`."""

    def __init__(self, numbers: Collection[ClassId], view: View) -> None:
        self._numbers = set(numbers)
        self._keys = {LEAF: len(view.leaves), OPAQUE: len(view.opaque)}

    def node(self, op: Data, children: Data, attrs: Data) -> ENode:
        """A node of the view."""
        check(op in _OTHERS or find(of_type(str, op)) is not None)
        node = Node(op, tuple(map(self._child, children)), attrs_of(attrs))
        if op in self._keys:
            check(node == Node(op, node.children, leaf_node(node.key).attrs))
            whole(node.key, below=self._keys[op])
        if op == SCALAR:
            check(node == scalar_node(of_type(float, node.scalar), of_type(str, node.dtype)))
        return node

    def classes(self, data: Data) -> tuple[ClassId, ...]:
        """Numbers of classes."""
        numbers = tuple(of_type(int, number) for number in data)
        check(self._numbers.issuperset(numbers))
        return numbers

    def _child(self, data: Data) -> Child[ClassId]:
        match data:
            case None:
                return None
            case int():
                (number,) = self.classes((data,))
                return number
            case list():
                return self.classes(data)
            case {"shape": _}:
                return shape_of(data)
            case _:
                return prim_of(data)


def _report(phases: Data, seconds: Data, notes: Data) -> Report:
    return Report(tuple(_phase(**phase) for phase in phases), seconds, tuple(notes))


def _phase(stop: Data, bans: Data, growth: Data, **rest: Any) -> PhaseReport:
    read = tuple(Ban(**ban) for ban in bans)
    return PhaseReport(stop=StopReason(stop), bans=read, growth=tuple(growth), **rest)
