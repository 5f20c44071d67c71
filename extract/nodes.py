"""Which nodes of a view extraction may use, and which classes the roots may need."""

from collections.abc import Mapping

from relax_egraph.egraph.view import LEAF, LOAD, OPAQUE, SCALAR, STORE, ClassId, EClass, ENode, View
from relax_egraph.extract.work import MOVEMENT


def is_operator(node: ENode) -> bool:
    """Whether `node` applies an operator, to tensors or inside a kernel."""
    return node.op not in (LEAF, SCALAR, OPAQUE, LOAD, STORE)


def is_there(node: ENode) -> bool:
    """Whether `node` is a value that nothing needs to make."""
    return node.op in (LEAF, SCALAR)


def is_constant(eclass: EClass) -> bool:
    """Whether the class can be folded: it depends on constants, and its shape is one of numbers."""
    known = eclass.struct_info.dims
    return eclass.is_const and known is not None and all(isinstance(d, int) for d in known)


def usable(classes: Mapping[ClassId, EClass], c: ClassId) -> tuple[ENode, ...]:
    """The nodes of class `c` that may be used.

    Of a value that is there, one; of a constant, the operators on constants; inside a kernel
    what can be loaded as a constant is never computed, only moved.
    """
    eclass = classes[c]
    nodes = eclass.nodes
    if eclass.sort == "kernel":
        if any(n.op == LOAD and is_constant(classes[n.classes[0]]) for n in nodes):
            return tuple(n for n in nodes if n.op == LOAD or n.op in MOVEMENT)
        return nodes
    if there := [n for n in nodes if is_there(n)]:
        return (there[0],)
    if is_folded(classes, c):
        return tuple(n for n in nodes if _folds(classes, n))
    return nodes


def is_folded(classes: Mapping[ClassId, EClass], c: ClassId) -> bool:
    """Whether the tensor class `c` is made at build time, by an operator on constants."""
    return is_constant(classes[c]) and any(_folds(classes, node) for node in classes[c].nodes)


def _folds(classes: Mapping[ClassId, EClass], node: ENode) -> bool:
    return is_operator(node) and all(is_constant(classes[k]) for k in node.classes)


def below(nodes: tuple[ENode, ...]) -> tuple[ClassId, ...]:
    """The classes that `nodes` are made of, each once."""
    return tuple(dict.fromkeys(k for node in nodes for k in node.classes))


def reached(view: View) -> dict[ClassId, tuple[ENode, ...]]:
    """The usable nodes of every class that the roots may need."""
    nodes: dict[ClassId, tuple[ENode, ...]] = {}
    todo = list(view.roots)
    while todo:
        c = todo.pop()
        if c not in nodes:
            nodes[c] = usable(view.classes, c)
            todo.extend(below(nodes[c]))
    return nodes
