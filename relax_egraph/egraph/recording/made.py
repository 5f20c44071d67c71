"""What rules write and make, as operators over classes: a node before it is one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from relax_egraph.egraph.encoding.attributes import meant
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.egraph.view import LEAF, LOAD, OPAQUE, SCALAR, STORE, TUPLE_GET, WHOLE, Sort
from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.struct_info import ShapeStructInfo


@dataclass(frozen=True, slots=True)
class Made:
    """An operator over classes, or over what is made like this; fields as of `view.ENode`.

    A ``scalar`` has its dtype as attribute.
    """

    op: str
    children: tuple["Instance | tuple[Instance, ...] | ShapeStructInfo | PrimValue", ...] = ()
    attrs: tuple[tuple[str, Attr], ...] = ()
    key: int = -1
    scalar: float = 0.0
    sort: Sort = "tensor"


Instance: TypeAlias = Key | Made | None
"""A value in a match: a class, an operator that the rule writes, or an operand that is left out."""


def built(head: str, args: Sequence[Any]) -> Made | None:
    """The operator that rules write ``(head args..)``; ``None`` for the one that is left out."""
    match head, args:
        case "R.none", _:
            return None
        case "Leaf", (key,):
            return Made(LEAF, key=key)
        case "R.const", (value, dtype):
            return Made(SCALAR, attrs=(("dtype", dtype),), scalar=value)
        case "Opaque", (key, operands):
            return Made(OPAQUE, tuple(operands), key=key)
        case "Whole", (whole,):
            return Made(WHOLE, (whole,))
        case "R.tuple_get", (whole, index):
            return Made(TUPLE_GET, (whole,), (("index", index),))
        case "K.store", (kernel,):
            return Made(STORE, (kernel,))
        case "K.load", (tensor,):
            return Made(LOAD, (tensor,), sort="kernel")
        case _:
            return _operator(head, args)


def _operator(head: str, args: Sequence[Any]) -> Made:
    letter, _, name = head.partition(".")
    traits = operators()[name]
    op, count = traits.op, len(traits.op.operands)
    children = tuple(
        ShapeStructInfo(arg, len(arg)) if operand.kind == "shape" else arg
        for operand, arg in zip(op.operands, args[:count], strict=True)
    )
    pairs = zip(op.attrs, args[count:], strict=True)
    attrs = tuple((attr.name, meant(attr, value)) for attr, value in pairs)
    result: Sort = "tuple" if traits.makes_tuple else "tensor"
    return Made(name, children, attrs, sort="kernel" if letter == "K" else result)


def classes_in(made: Made) -> Iterator[Key]:
    """The classes among the operands of `made`."""
    for child in made.children:
        if isinstance(child, Key):
            yield child
        elif isinstance(child, tuple):
            yield from (c for c in child if isinstance(c, Key))
