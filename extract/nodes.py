"""Which nodes of a view extraction may use, and which classes the roots may need."""

from collections.abc import Mapping

from relax_egraph.egraph.view import (
    LEAF,
    LOAD,
    OPAQUE,
    SCALAR,
    STORE,
    TUPLE_GET,
    WHOLE,
    Child,
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
    """Whether class `c`, a tensor or a tuple, is made at build time by an operator on constants."""
    made = classes[c].sort == "tuple" or is_constant(classes[c])
    return made and any(_folds(classes, node) for node in classes[c].nodes)


def _folds(classes: Mapping[ClassId, EClass], node: ENode) -> bool:
    if node.op == TUPLE_GET:
        return any(_folds(classes, n) for n in classes[node.classes[0]].nodes)
    return is_operator(node) and all(is_constant(classes[k]) for k in node.classes)


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
