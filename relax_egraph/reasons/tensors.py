"""A saturated e-graph and the chosen program in terms of tensors, kernels unfolded.

A class within kernels stands for the class of the tensor that the kernel would store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relax_egraph.egraph.node import LOAD, STORE
from relax_egraph.egraph.view import ClassId, ENode, View
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
    """By tensor class of the saturated `view`, what computes it."""
    tensors = tensors_of(view)
    chosen: dict[ClassId, Chosen] = {}
    for number, one in program:
        for c, place in chosen_nodes(view, [one.choice]).items():
            node = _over(view.classes[c].nodes[place], tensors)
            if node is not None and c in tensors:
                chosen.setdefault(tensors[c], Chosen(node, number))
    return chosen


def nodes_of(view: View) -> Mapping[ClassId, tuple[ENode, ...]]:
    """By tensor class, its nodes and those of the kernels that store it, each once."""
    tensors = tensors_of(view)
    nodes: dict[ClassId, dict[ENode, None]] = {}
    for c, tensor in tensors.items():
        of_tensor = nodes.setdefault(tensor, {})
        for node in view.classes[c].nodes:
            over = _over(node, tensors)
            if over is not None:
                of_tensor[over] = None
    return {tensor: tuple(each) for tensor, each in nodes.items()}


def tensors_of(view: View) -> Mapping[ClassId, ClassId]:
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


def _over(node: ENode, tensors: Mapping[ClassId, ClassId]) -> ENode | None:
    """`node` over tensors; ``None`` if it moves a tensor, or an operand is no tensor."""
    if node.op in (LOAD, STORE) or not all(k in tensors for k in node.operands):
        return None
    return node.over(tensors.__getitem__)
