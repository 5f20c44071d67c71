"""Small hand-written views, for tests of saturation."""

import numpy as np

from relax_egraph.egraph.engine import Saturated
from relax_egraph.egraph.node import Node, leaf_node
from relax_egraph.egraph.view import EClass, View
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Constant, Var
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor

N = dims.symbol("n")
TABLE = tensor((N, 4), "float32")


def leaf(key: int, info: TensorStructInfo = TABLE, scalar: float | None = None) -> EClass:
    return EClass("tensor", (leaf_node(key),), info, scalar is not None, scalar)


def operation(
    op: str,
    *children: int | ShapeStructInfo,
    info: TensorStructInfo = TABLE,
    **attrs: Attr,
) -> EClass:
    return EClass("tensor", (Node(op, children, tuple(attrs.items())),), info)


def view(*classes: EClass) -> View:
    """A view whose root is its last class; leaves are variables, or constants if scalars."""
    leaves = tuple(
        Var(f"x{k}", c.struct_info)
        if c.scalar is None
        else Constant(np.asarray(c.scalar, np.float32))
        for k, c in enumerate(classes)
        if c.nodes[0].op == "leaf"
    )
    return View(dict(enumerate(classes)), (len(classes) - 1,), leaves)


def shape(*values: Dim) -> ShapeStructInfo:
    return ShapeStructInfo(values, len(values))


def root(saturated: Saturated) -> EClass:
    return saturated.view.classes[saturated.view.roots[0]]


def ops(eclass: EClass) -> set[str]:
    return {node.op for node in eclass.nodes}
