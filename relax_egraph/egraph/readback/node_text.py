"""A view as text, in the notation of rules: what is printed can stand in a file test.

$0: R.Tensor((n, 4), "float32")  (R.add $1 $2)  (K.store $5)
"""

from collections.abc import Container, Iterator

from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.attributes import SORT_OF_ATTR, said
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.egraph.view import (
    LEAF,
    LOAD,
    OPAQUE,
    SCALAR,
    STORE,
    TUPLE_GET,
    WHOLE,
    Child,
    EClass,
    ENode,
    View,
)
from relax_egraph.ir.expr import PrimValue, Var
from relax_egraph.ir.op import OperandKind
from relax_egraph.ir.struct_info import ShapeStructInfo

_HEADS = {
    LEAF: "Leaf",
    SCALAR: "R.const",
    OPAQUE: "Opaque",
    WHOLE: "Whole",
    TUPLE_GET: "R.tuple_get",
    LOAD: "K.load",
    STORE: "K.store",
}


def view_lines(view: View, only: Container[int] | None = None) -> Iterator[str]:
    """A line for each class of `view`, or for those in `only`: its name, type and nodes."""
    for number, eclass in view.classes.items():
        if only is None or number in only:
            nodes = "  ".join(f"({node_text(node, eclass)})" for node in eclass.nodes)
            leaves = (view.leaves[node.key] for node in eclass.nodes if node.op == LEAF)
            names = " ".join(leaf.name for leaf in leaves if isinstance(leaf, Var))
            yield f"${number}: {eclass.struct_info}  {nodes}{f'  ; {names}' * bool(names)}"


def node_text(node: ENode, eclass: EClass, *, whole: bool = True) -> str:
    """`node` of `eclass`: ``R.sum $3 (vec-of 1) false``; unless `whole`, without its classes."""
    head = _HEADS.get(node.op) or f"{'K' if eclass.sort == 'kernel' else 'R'}.{node.op}"
    arguments = [text for text, of_classes in _arguments(node, eclass) if whole or not of_classes]
    return " ".join((head, *arguments))


def _arguments(node: ENode, eclass: EClass) -> Iterator[tuple[str, bool]]:
    """Each argument of `node` in order, and whether it is made of classes."""
    if node.key >= 0:
        yield str(node.key), False
    if node.op == SCALAR:
        yield literals.number(node.scalar), False
        yield literals.string(eclass.struct_info.dtype or ""), False
    elif node.op == OPAQUE:
        yield literals.vector([f"${c}" for c in node.classes]), True
    elif node.op in _HEADS:
        yield from ((f"${c}", True) for c in node.classes)
        yield from ((str(value), False) for _, value in node.attrs)
    else:
        op = operators()[node.op].op
        for operand, child in zip(op.operands, node.children, strict=True):
            yield _operand(operand.kind, child), isinstance(child, int | tuple)
        for attr, (_, value) in zip(op.attrs, node.attrs, strict=True):
            yield literals.attribute(SORT_OF_ATTR[attr.kind], said(attr, value)) or "_", False


def _operand(kind: OperandKind, child: Child) -> str:
    match child:
        case int():
            return f"${child}"
        case tuple():
            return literals.vector([f"${c}" for c in child])
        case ShapeStructInfo(values=values):
            return "_" if values is None else literals.shape(values)
        case None if kind == "tensor":
            return "(R.none)"
        case PrimValue() | None:
            return literals.prim(child)
