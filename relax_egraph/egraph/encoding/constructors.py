"""Translation between egglog's constructors and nodes: ``(R.sum x (vec-of 1) false)``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.attributes import meant, said
from relax_egraph.egraph.node import (
    CALLS,
    LEAF,
    LOAD,
    OPAQUE,
    SCALAR,
    STORE,
    TUPLE_GET,
    WHOLE,
    C,
    Node,
    call_node,
    opaque_node,
)
from relax_egraph.egraph.rulebook.vocabulary import Declaration, Param, operators, vocabulary_table
from relax_egraph.ir.op import AttrParam
from relax_egraph.ir.operators import by_operators
from relax_egraph.ir.struct_info import ShapeStructInfo

OF_CLASSES = ("Tensor", "Kernel", "Tuple", "Tensors")
"""The sorts of arguments that are classes, or vectors of classes."""

_OF_CHILDREN = (*OF_CLASSES, "Shape", "Prim")

_HEADS = {
    LEAF: "Leaf",
    SCALAR: "R.const",
    OPAQUE: "Opaque",
    WHOLE: "Whole",
    STORE: "K.store",
    LOAD: "K.load",
    TUPLE_GET: "R.tuple_get",
    **{op: f"R.{op}" for op in CALLS},
}

_OPS = {head: op for op, head in _HEADS.items()}

NONE = "R.none"
"""The constructor of an omitted operand."""


@dataclass(frozen=True, slots=True)
class Constructor:
    """The constructor of nodes of operator `op`, in classes of sort `result`: ``(head args..)``.

    `params` are the arguments in egglog's order: the children, then the attributes; a call begins
    with its name.  `optional` are the positions of optional children; `attrs` are the operator's
    definitions of attributes.
    """

    head: str
    op: str
    result: str
    params: tuple[Param, ...]
    optional: frozenset[int]
    attrs: tuple[AttrParam | None, ...]

    def node(self, args: Sequence[Any]) -> Node[Any]:
        """The node of these arguments."""
        if self.op == OPAQUE:
            return opaque_node(args[0], args[1])
        if self.op in CALLS:
            name, operands, shape, dtype = args
            return call_node(self.op, name, operands, ShapeStructInfo(shape, len(shape)), dtype)
        values: list[Any] = [
            ShapeStructInfo(arg, len(arg)) if param.sort == "Shape" else arg
            for param, arg in zip(self.params, args, strict=True)
        ]
        count = len(values) - len(self.attrs)
        attrs = [
            (param.name, meant(attr, value) if attr else value)
            for param, attr, value in zip(
                self.params[count:], self.attrs, values[count:], strict=True
            )
        ]
        return Node(self.op, tuple(values[:count]), tuple(attrs))

    def arguments(self, node: Node[C]) -> Iterator[tuple[Param, Any]]:
        """The arguments of the constructor for `node`, each with its parameter."""
        if self.op == OPAQUE:
            return zip(self.params, (node.key, node.children), strict=True)
        if self.op in CALLS:
            (_, name), (_, dtype) = node.attrs
            return zip(self.params, (name, *node.children, dtype), strict=True)
        pairs = zip(self.attrs, node.attrs, strict=True)
        attrs = (said(attr, value) if attr else value for attr, (_, value) in pairs)
        return zip(self.params, (*node.children, *attrs), strict=True)

    def text(self, node: Node[C], name: Callable[[C], str]) -> str:
        """`node` in the notation of rules, with `name` for each operand."""
        parts = (argument_text(param.sort, arg, name) for param, arg in self.arguments(node))
        return f"({' '.join((self.head, *parts))})"


@by_operators(64)
def constructors() -> Mapping[str, Constructor]:
    """The constructors of nodes by name, in the order of reading back."""
    declared = {d.name: d for d in vocabulary_table()}
    names = (*_OPS, *(f"{letter}.{op}" for op in operators() for letter in "RK"))
    return {name: _constructor(declared[name]) for name in names if name in declared}


def _constructor(of: Declaration) -> Constructor:
    if of.name in _OPS:
        attrs = (None,) * sum(p.sort not in _OF_CHILDREN for p in of.params)
        return Constructor(of.name, _OPS[of.name], of.result, of.params, frozenset(), attrs)
    op = operators()[of.name.partition(".")[2]].op
    optional = frozenset(k for k, operand in enumerate(op.operands) if operand.optional)
    return Constructor(of.name, op.name, of.result, of.params, optional, op.attrs)


@by_operators(1 << 12)
def constructor_of(op: str, *, within_kernel: bool = False) -> Constructor:
    """The constructor of the nodes of operator `op`."""
    return constructors()[_HEADS.get(op) or f"{'K' if within_kernel else 'R'}.{op}"]


def argument_text(sort: str, arg: Any, name: Callable[[Any], str]) -> str:
    """An argument of `sort` in the notation of rules; ``_`` if it is not canonical."""
    match sort:
        case "Tensor" | "Kernel" | "Tuple":
            return f"({NONE})" if arg is None else name(arg)
        case "Tensors":
            return literals.vector([name(one) for one in arg])
        case "Shape":
            return "_" if arg.values is None else literals.shape(arg.values)
        case "Prim":
            return literals.prim(arg)
        case _:
            return literals.attribute(sort, arg) or "_"
