"""Printing of a view in the notation of rules, which file tests accept.

$0: R.Tensor((n, 4), "float32")  (R.add $1 $2)  (K.store $5)
"""

from collections.abc import Container, Iterator

from relax_egraph.egraph.encoding.constructors import OF_CLASSES, argument_text, constructor_of
from relax_egraph.egraph.node import LEAF
from relax_egraph.egraph.view import EClass, ENode, View
from relax_egraph.ir.expr import Var


def view_lines(view: View, only: Container[int] | None = None) -> Iterator[str]:
    """A line for each class of `view`, or of `only`: its name, type and nodes."""
    for number, eclass in view.classes.items():
        if only is None or number in only:
            nodes = "  ".join(f"({node_text(node, eclass)})" for node in eclass.nodes)
            leaves = (view.leaves[node.key] for node in eclass.nodes if node.op == LEAF)
            names = " ".join(leaf.name for leaf in leaves if isinstance(leaf, Var))
            yield f"${number}: {eclass.struct_info}  {nodes}{f'  ; {names}' * bool(names)}"


def node_text(node: ENode, eclass: EClass, *, whole: bool = True) -> str:
    """`node` of `eclass`: ``R.sum $3 (vec-of 1) false``; unless `whole`, without its classes."""
    constructor = constructor_of(node.op, within_kernel=eclass.sort == "kernel")
    arguments = (
        argument_text(param.sort, arg, "${}".format)
        for param, arg in constructor.arguments(node)
        if whole or param.sort not in OF_CLASSES or arg is None
    )
    return " ".join((constructor.head, *arguments))
