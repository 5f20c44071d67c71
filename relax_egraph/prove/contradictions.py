"""Premises that are false of the values so far, whatever is chosen later.

An instance follows its premises in an order in which each can be, and many are mere comparisons of
what earlier ones made: if one is false already, no more choices are to be made.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.prove.layouts import AnyOrder
from relax_egraph.prove.nodes import Value, dtype_of, shape_of
from relax_egraph.verify.instances.primitives import PRIMITIVES, Fails, compute
from relax_egraph.verify.instances.query import literal_of


def is_false(fact: Tree, values: Mapping[str, Any]) -> bool:
    """Whether a premise is false of the values that variables have; not where that is unknown."""
    if not isinstance(fact, Form) or not fact.items[1:]:
        return False
    terms = fact.items[1:]
    match fact.head:
        case "=":
            sides = [side for t in terms if (side := _known(t, values)) is not _UNKNOWN]
            return any(_differ(sides[0], other) for other in sides[1:])
        case "is-float":
            (x,) = (_known(t, values) for t in terms)
            return _is_tensor(x) and not is_float(dtype_of(x))
        case "<" | "<=" | ">" | ">=":
            pair = [_known(t, values) for t in terms]
            return all(isinstance(n, int) for n in pair) and not PRIMITIVES[fact.head](*pair)
        case "vec-contains" | "vec-not-contains" | "not" | "and":
            return _known(fact, values) is False
        case _:
            return False


_UNKNOWN = object()
"""What is not known yet, or would take a choice."""


def _known(tree: Tree, values: Mapping[str, Any]) -> Any:
    """The value of a term of what has one, without symbols but in a shape."""
    if isinstance(tree, Atom):
        literal = literal_of(tree.text)
        return values.get(tree.text, _UNKNOWN) if literal is None else literal.value
    args: list[Any] = []
    for item in tree.items[1:]:
        args.append(_known(item, values))
        if args[-1] is _UNKNOWN:
            return _UNKNOWN
    return _computed(tree.head, args)


def _computed(head: str, args: Sequence[Any]) -> Any:
    match head, args:
        case "shape-of", [x] if _is_tensor(x):
            return shape_of(x)
        case "rank-of", [x] if _is_tensor(x):
            return len(shape_of(x))
        case "dtype-of", [x] if _is_tensor(x):
            return dtype_of(x)
        case _ if head in _OF_PLACES or (head in PRIMITIVES and all(map(_is_plain, args))):
            try:
                return compute(head, tuple(args))
            except Fails:
                return _UNKNOWN
        case _:
            return _UNKNOWN


_OF_PLACES = frozenset(("vec-of", "vec-length", "vec-get"))
"""Primitives for which it does not matter what the items of a vector are."""


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Value) and isinstance(x.info, TensorStructInfo)


def _is_plain(x: Any) -> bool:
    if isinstance(x, tuple):
        items: tuple[Any, ...] = x
        return all(map(_is_plain, items))
    return isinstance(x, bool | int | str) and not isinstance(x, AnyOrder)


def _differ(a: Any, b: Any) -> bool:
    """Whether two values are different, whatever their symbols are."""
    match a, b:
        case tuple(), tuple():
            return len(a) != len(b) or any(map(_differ, a, b))
        case (bool() | str(), _) | (_, bool() | str()):
            return _is_plain(a) and _is_plain(b) and a != b
        case int(), int():
            return a != b
        case _ if _is_tensor(a) and _is_tensor(b):
            return dtype_of(a) != dtype_of(b) or _differ(shape_of(a), shape_of(b))
        case _:
            return False
