"""What makes two encoded regions the same: all but names, and what their leaves hold.

The saturated view of one, and the program extracted from it, then serve for the other, over the
leaves and the opaque bindings of that.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from relax_egraph.egraph.view import EClass, ENode, View
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    MatchCast,
    PrimValue,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.op import Op


@dataclass(frozen=True, slots=True)
class Signature:
    """Of regions that are the same the same one; it is hashed once."""

    parts: Hashable
    _hash: int = field(compare=False)

    def __hash__(self) -> int:
        return self._hash


def signature(view: View) -> Signature:
    """Equal for views that differ only in which variables and constants their leaves are.

    Numbers are compared with their sign and type, leaves by what is known of them: the data of
    constants is not read.  A variable that names a shape must be the same.
    """
    parts = (
        tuple((number, _class(eclass)) for number, eclass in view.classes.items()),
        view.roots,
        tuple(map(_leaf, view.leaves)),
        tuple(map(_opaque, view.opaque)),
    )
    return Signature(parts, hash(parts))


def _class(eclass: EClass) -> Hashable:
    nodes = tuple(map(_node, eclass.nodes))
    known = (eclass.is_const, repr(eclass.scalar), eclass.narrow)
    return (eclass.sort, nodes, eclass.struct_info, *known)


def _node(node: ENode) -> Hashable:
    children = tuple(_value(c) if isinstance(c, PrimValue) else c for c in node.children)
    attrs = tuple((name, repr(value)) for name, value in node.attrs)
    return (node.op, children, attrs)


def _leaf(leaf: Expr) -> Hashable:
    return None if isinstance(leaf, Constant) else leaf.struct_info


def _opaque(binding: Binding) -> Hashable:
    said = (binding.struct_info, binding.refusal) if isinstance(binding, MatchCast) else None
    return (type(binding), said, binding.var.struct_info, _value(binding.value))


def _value(value: Expr) -> Hashable:
    """`value` without the variables and constants that it reads: nodes say which they are."""
    match value:
        case Var() | Constant():
            return None
        case Tuple(fields=fields):
            return ("tuple", *map(_value, fields))
        case TupleGetItem(tuple_value=inner, index=index):
            return ("field", _value(inner), index)
        case PrimValue(value=number, dtype=dtype):
            exact = repr(number) if isinstance(number, float) else number
            return ("number", type(number), exact, dtype)
        case Call(op=op, args=args, attrs=attrs, sinfo_args=said, struct_info=info):
            callee = ("operator", op.name) if isinstance(op, Op) else op
            written = tuple((name, repr(attr)) for name, attr in attrs.items())
            return (callee, tuple(map(_value, args)), written, said, info)
        case _:
            return value
