"""Order of nodes in a class: the nodes of the source program come first.

Commuted forms cost the same, and extraction takes the first; so the optimized program keeps the
operand order of the source.
"""

from collections.abc import Mapping
from dataclasses import replace

from relax_egraph.egraph.node import LOAD, STORE
from relax_egraph.egraph.view import ClassId, EClass, ENode, View


def source_first(view: View, loaded: View, became: Mapping[ClassId, ClassId]) -> View:
    """`view` with the nodes of `loaded` in front; `became` maps classes of `loaded` to `view`.

    A kernel node of two operands stands for both orders: it gets the order of the source.
    """
    written = {
        (became[c], node.over(became.__getitem__))
        for c, eclass in loaded.classes.items()
        for node in eclass.nodes
        if c in became and all(k in became for k in node.operands)
    }
    tensors = _tensors(view)

    def is_written(c: ClassId, node: ENode) -> bool:
        return (tensors.get(c, c), node.over(lambda k: tensors.get(k, k))) in written

    def ordered(c: ClassId, eclass: EClass) -> EClass:
        nodes = [_swapped(n) if is_written(c, _swapped(n)) else n for n in eclass.nodes]
        first_written = sorted(dict.fromkeys(nodes), key=lambda n: not is_written(c, n))
        return replace(eclass, nodes=tuple(first_written))

    return replace(view, classes={c: ordered(c, e) for c, e in view.classes.items()})


def _tensors(view: View) -> dict[ClassId, ClassId]:
    """The tensor class of the same value, for each kernel class."""
    tensors: dict[ClassId, ClassId] = {}
    for c, eclass in view.classes.items():
        for node in eclass.nodes:
            if node.op == STORE:
                tensors[node.operands[0]] = c
            elif node.op == LOAD:
                tensors.setdefault(c, node.operands[0])
    return tensors


def _swapped(node: ENode) -> ENode:
    """`node` with its two operands swapped; any other node unchanged."""
    return replace(node, children=node.children[::-1]) if len(node.operands) == 2 else node
