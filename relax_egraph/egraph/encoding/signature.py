"""Signatures of encoded regions: equal if the regions differ only in names and data of leaves.

Regions with one signature share the saturated view and the extracted program, each over its own
leaves and opaque bindings.
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
    """A key of a region, with its hash precomputed."""

    parts: Hashable
    _hash: int = field(compare=False)

    def __hash__(self) -> int:
        return self._hash


def signature(view: View) -> Signature:
    """The signature of a view; equal for views with other variables and constants as leaves.

    Numbers are compared with their sign and type, leaves by struct info; the data of constants is
    not read.  A shape variable must be the same.
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
    known = (eclass.is_const, repr(eclass.scalar), eclass.narrow, eclass.magnitude)
    return (eclass.sort, nodes, eclass.struct_info, *known, eclass.has_reciprocal)


def _node(node: ENode) -> Hashable:
    children = tuple(_value(c) if isinstance(c, PrimValue) else c for c in node.children)
    attrs = tuple((name, repr(value)) for name, value in node.attrs)
    return (node.op, children, attrs)


def _leaf(leaf: Expr) -> Hashable:
    return None if isinstance(leaf, Constant) else leaf.struct_info


def _opaque(binding: Binding) -> Hashable:
    claim = (binding.struct_info, binding.refusal) if isinstance(binding, MatchCast) else None
    return (type(binding), claim, binding.var.struct_info, _value(binding.value))


def _value(value: Expr) -> Hashable:
    """`value` without the variables and constants that it reads, as nodes refer to them."""
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
        case Call(op=op, args=args, attrs=attrs, sinfo_args=sinfo, struct_info=info):
            callee = ("operator", op if op.own else op.name) if isinstance(op, Op) else op
            written = tuple((name, repr(attr)) for name, attr in attrs.items())
            return (callee, tuple(map(_value, args)), written, sinfo, info)
        case _:
            return value
