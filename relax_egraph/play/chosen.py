"""The chosen program in terms of tensors: the node and the kernel that compute each class."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relax_egraph.egraph.node import LOAD, STORE
from relax_egraph.egraph.view import ClassId, ENode, View
from relax_egraph.play.growth import Class, Step
from relax_egraph.reasons.chosen import chosen_nodes
from relax_egraph.reasons.kernels import Running


@dataclass(frozen=True, slots=True)
class Chosen:
    """The node that computes a class, and the number of the kernel that it is part of."""

    node: ENode
    kernel: int | None


def chosen_of(
    view: View, program: Iterable[tuple[int | None, Running]]
) -> Mapping[ClassId, Chosen]:
    """By tensor class of the saturated `view`, what computes it.

    A node within a kernel stands for the node of the tensors that the kernel would store.
    """
    tensors = _tensors(view)
    chosen: dict[ClassId, Chosen] = {}
    for number, one in program:
        for c, place in chosen_nodes(view, [one.choice]).items():
            node = view.classes[c].nodes[place]
            if node.op in (LOAD, STORE) or c not in tensors:
                continue
            if all(k in tensors for k in node.operands):
                chosen.setdefault(tensors[c], Chosen(node.over(tensors.__getitem__), number))
    return chosen


def _tensors(view: View) -> Mapping[ClassId, ClassId]:
    """By class, the class of the tensor: itself, or the one that a kernel class stores."""
    tensors: dict[ClassId, ClassId] = {}
    for c, eclass in view.classes.items():
        if eclass.sort != "kernel":
            tensors[c] = c
        for node in eclass.nodes:
            if node.op == STORE:
                tensors.setdefault(node.operands[0], c)
            elif node.op == LOAD:
                tensors.setdefault(c, node.operands[0])
    return tensors


def saturated_classes(
    step: Step, became: Mapping[ClassId, ClassId], view: View
) -> Mapping[Class, ClassId]:
    """By class of the last `step`, its class in the saturated `view`.

    `became` maps those of the program; the others are found by their nodes.
    """
    nodes = {
        node: c
        for c, eclass in view.classes.items()
        if eclass.sort != "kernel"
        for node in eclass.nodes
    }
    known = {c: became[c] for c in step.classes if c in became}
    changed = True
    while changed:
        changed = False
        for c, entries in step.classes.items():
            if c in known:
                continue
            for entry in entries:
                if all(k in known for k in entry.node.operands):
                    now = nodes.get(entry.node.over(known.__getitem__))
                    if now is not None:
                        known[c], changed = now, True
                        break
    return known
