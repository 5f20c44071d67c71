"""Which nodes of a view extraction may use, and which classes the roots may need."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.egraph.node import CALLS, LEAF, LOAD, OPAQUE, SCALAR, STORE, TUPLE_GET, WHOLE
from relax_egraph.egraph.view import Choice, ClassId, EClass, ENode, View
from relax_egraph.errors import IllTyped
from relax_egraph.extract.work import MOVEMENT
from relax_egraph.ir.operators import named
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


def is_operator(node: ENode) -> bool:
    """Whether `node` applies an operator, to tensors or inside a kernel."""
    return node.op not in (LEAF, SCALAR, OPAQUE, LOAD, STORE, TUPLE_GET, WHOLE, *CALLS)


def is_call(node: ENode) -> bool:
    """Whether `node` calls a function below the graph."""
    return node.op in CALLS


def fits_kernel(node: ENode) -> bool:
    """Whether `node` may be a step of a kernel: its operands are tensors and shapes."""
    return is_operator(node) and all(isinstance(c, int | ShapeStructInfo) for c in node.children)


def is_alias(node: ENode) -> bool:
    """Whether `node` is another name of a value: an element of a tuple, or the whole of one."""
    return node.op in (TUPLE_GET, WHOLE)


def is_leaf(node: ENode) -> bool:
    """Whether `node` is an input or a scalar, which no program has to compute."""
    return node.op in (LEAF, SCALAR)


def is_constant(eclass: EClass) -> bool:
    """Whether the class can be folded: it depends on constants, and its shape is one of numbers."""
    known = eclass.struct_info.dims
    return eclass.is_const and known is not None and all(isinstance(d, int) for d in known)


def usable_nodes(
    classes: Mapping[ClassId, EClass], c: ClassId, free: Mapping[ClassId, Choice]
) -> tuple[ENode, ...]:
    """The nodes of class `c` that extraction may choose; none for a free value.

    A kernel never computes what it can load as a constant: it only moves it, or widens it from
    fewer bits.  A broadcast of a free value is never computed from other values.
    """
    if c in free:
        return ()
    nodes = classes[c].nodes
    if any(_repeats_free(classes, n, free) for n in nodes):
        return tuple(n for n in nodes if n.op in ("broadcast_to", "full", LOAD, STORE))
    loaded = (n.operands[0] for n in nodes if n.op == LOAD)
    if any(k in free and is_constant(classes[k]) for k in loaded):
        moving = (LOAD, *MOVEMENT)
        return tuple(n for n in nodes if n.op in moving or _widens(classes, c, n))
    return nodes


def _repeats_free(
    classes: Mapping[ClassId, EClass], node: ENode, free: Mapping[ClassId, Choice]
) -> bool:
    """Whether `node` is a broadcast of a free value, or of a load of one."""
    if node.op != "broadcast_to":
        return False
    (source,) = node.operands
    return source in free or any(
        n.op == LOAD and n.operands[0] in free for n in classes[source].nodes
    )


def _widens(classes: Mapping[ClassId, EClass], c: ClassId, node: ENode) -> bool:
    """Whether `node` of class `c` converts to a dtype of more bits."""
    if node.op != "astype":
        return False
    before, after = (classes[k].struct_info.dtype for k in (node.operands[0], c))
    return bool(before and after) and np.dtype(before).itemsize < np.dtype(after).itemsize


def results_of(
    classes: Mapping[ClassId, EClass], c: ClassId, node: ENode
) -> tuple[TensorStructInfo, ...]:
    """The tensors that the operator `node` of class `c` returns: one, or the fields of a tuple.

    Empty if its struct-info rule does not know the fields.
    """
    if classes[c].sort != "tuple":
        return (classes[c].struct_info,)
    infos = node.infos(lambda k: classes[k].struct_info)
    try:
        result = named(node.op).rule(*infos, **dict(node.attrs))
    except IllTyped:
        return ()
    fields = result.fields if isinstance(result, TupleStructInfo) else ()
    return tuple(f for f in fields if isinstance(f, TensorStructInfo))


def child_classes(nodes: tuple[ENode, ...]) -> tuple[ClassId, ...]:
    """The child classes of `nodes`, each once."""
    return tuple(dict.fromkeys(k for node in nodes for k in node.operands))


def reachable_nodes(view: View, free: Mapping[ClassId, Choice]) -> dict[ClassId, tuple[ENode, ...]]:
    """The usable nodes of every class that the roots may need.

    A free value that is a broadcast may be read as its operand, which is therefore reachable too.
    """
    nodes: dict[ClassId, tuple[ENode, ...]] = {}
    todo = list(view.roots)
    while todo:
        c = todo.pop()
        if c not in nodes:
            nodes[c] = usable_nodes(view.classes, c, free)
            all_nodes = view.classes[c].nodes if c in free else ()
            broadcasts = (n for n in all_nodes if n.op == "broadcast_to")
            todo.extend(child_classes((*nodes[c], *broadcasts)))
    return nodes
