"""Which nodes of a view extraction may use, and which classes the roots may need."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.egraph.view import (
    LEAF,
    LOAD,
    OPAQUE,
    SCALAR,
    STORE,
    TUPLE_GET,
    WHOLE,
    Child,
    Choice,
    ClassId,
    EClass,
    ENode,
    View,
)
from relax_egraph.errors import IllTyped
from relax_egraph.extract.work import MOVEMENT
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


def is_operator(node: ENode) -> bool:
    """Whether `node` applies an operator, to tensors or inside a kernel."""
    return node.op not in (LEAF, SCALAR, OPAQUE, LOAD, STORE, TUPLE_GET, WHOLE)


def fits_kernel(node: ENode) -> bool:
    """Whether `node` may be a step of a kernel: its operands are tensors and shapes."""
    return is_operator(node) and all(isinstance(c, int | ShapeStructInfo) for c in node.children)


def is_handle(node: ENode) -> bool:
    """Whether `node` only gives a value that is there another name."""
    return node.op in (TUPLE_GET, WHOLE)


def is_there(node: ENode) -> bool:
    """Whether `node` is a value that nothing needs to make."""
    return node.op in (LEAF, SCALAR)


def is_constant(eclass: EClass) -> bool:
    """Whether the class can be folded: it depends on constants, and its shape is one of numbers."""
    known = eclass.struct_info.dims
    return eclass.is_const and known is not None and all(isinstance(d, int) for d in known)


def usable(
    classes: Mapping[ClassId, EClass], c: ClassId, given: Mapping[ClassId, Choice]
) -> tuple[ENode, ...]:
    """The nodes of class `c` that may be used: of a value that is given, none.

    Inside a kernel what can be loaded as a constant is never computed, only moved, or widened from
    fewer bits.
    """
    if c in given:
        return ()
    nodes = classes[c].nodes
    loaded = (n.classes[0] for n in nodes if n.op == LOAD)
    if any(k in given and is_constant(classes[k]) for k in loaded):
        read = (LOAD, *MOVEMENT)
        return tuple(n for n in nodes if n.op in read or _widens(classes, c, n))
    return nodes


def _widens(classes: Mapping[ClassId, EClass], c: ClassId, node: ENode) -> bool:
    """Whether `node` of class `c` converts to a dtype of more bits."""
    if node.op != "astype":
        return False
    before, after = (classes[k].struct_info.dtype for k in (node.classes[0], c))
    return bool(before and after) and np.dtype(before).itemsize < np.dtype(after).itemsize


def results_of(
    classes: Mapping[ClassId, EClass], c: ClassId, node: ENode
) -> tuple[TensorStructInfo, ...]:
    """What the operator `node` of class `c` gives: one tensor, or those of a tuple.

    Nothing, if its own rule does not know the parts.
    """
    if classes[c].sort != "tuple":
        return (classes[c].struct_info,)
    infos = [_info(classes, child) for child in node.children]
    try:
        made = OPS[node.op].rule(*infos, **dict(node.attrs))
    except IllTyped:
        return ()
    fields = made.fields if isinstance(made, TupleStructInfo) else ()
    return tuple(f for f in fields if isinstance(f, TensorStructInfo))


def _info(classes: Mapping[ClassId, EClass], child: Child) -> StructInfo | None:
    match child:
        case int():
            return classes[child].struct_info
        case tuple():
            return TupleStructInfo(tuple(classes[k].struct_info for k in child))
        case PrimValue():
            return child.struct_info
        case _:
            return child


def below(nodes: tuple[ENode, ...]) -> tuple[ClassId, ...]:
    """The classes that `nodes` are made of, each once."""
    return tuple(dict.fromkeys(k for node in nodes for k in node.classes))


def reached(view: View, given: Mapping[ClassId, Choice]) -> dict[ClassId, tuple[ENode, ...]]:
    """The usable nodes of every class that the roots may need; what is given needs none.

    What is given may be read as what it repeats, so that may be needed too.
    """
    nodes: dict[ClassId, tuple[ENode, ...]] = {}
    todo = list(view.roots)
    while todo:
        c = todo.pop()
        if c not in nodes:
            nodes[c] = usable(view.classes, c, given)
            read = view.classes[c].nodes if c in given else ()
            repeated = (n for n in read if n.op == "broadcast_to")
            todo.extend(below((*nodes[c], *repeated)))
    return nodes
