"""Primitives and functions of rules, of values with symbols in them.

What looks at a symbol has one value for some numbers and another for others: where that is not
decided, a rule that reads it is not proven.
"""

from collections.abc import Sequence
from typing import Any

import sympy

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.rulebook.vocabulary import DIM_OPERATORS
from relax_egraph.ir import dims
from relax_egraph.prove.attributes import Open
from relax_egraph.prove.layouts import AnyOrder, may_be_one
from relax_egraph.prove.meanings import BLIND
from relax_egraph.verify.instances.primitives import compute


def computed(head: str, args: Sequence[Any]) -> Any:
    """The value of ``(head args..)``; raises `Fails` if it has none, `Open` if that depends."""
    if head == "DimSym":
        return of_program(*args)
    if head == "unstable-vec-map":
        (name, *first), items = args
        return tuple(computed(name, (*first, item)) for item in items)
    if head in ("vec-contains", "vec-not-contains"):
        found = contains(*args)
        if found is None:
            raise Open(f"whether a vector of symbols has an item ({head})")
        return found == (head == "vec-contains")
    if is_symbolic(args):
        known = BLIND if head in FUNCTIONS else _OF_SYMBOLS
        at_symbol = head in _AT_PLACES and is_symbolic(args[1:2])
        of_order = head in _OF_NUMBERS and any(isinstance(a, AnyOrder) for a in args)
        if head not in known or at_symbol or of_order:
            raise Open(f"the function {head} of symbolic extents")
    if head == "count-matches":
        return args[0].count(args[1])
    return compute(head, tuple(args))


def divisors(head: str, args: Sequence[Any]) -> Sequence[Any]:
    """The dimensions that ``(head args..)`` divides by: it has a value where none of them is 0."""
    match args:
        case ((str(name), _), items) if head == "unstable-vec-map":
            return items if name in _DIVIDE else ()
        case (_, divisor) if head in _DIVIDE:
            return (divisor,)
        case _:
            return ()


def contains(items: Sequence[Any], item: Any) -> bool | None:
    """Whether `item` is one of `items`; ``None`` if that depends on symbols."""
    answers = [_is_same(x, item) for x in items]
    return True if True in answers else None if None in answers else False


def _is_same(a: Any, b: Any) -> bool | None:
    if isinstance(a, int | sympy.Expr) and isinstance(b, int | sympy.Expr):
        return True if dims.equal(a, b) else False if dims.distinct(a, b) else None
    if isinstance(a, str | float) and isinstance(b, str | float):
        return True if a == b else None if may_be_one(a, b) else False
    return True if a is b else None


def of_program(text: str) -> dims.Dim:
    """The dimension of a text in a rule: its symbols are none of those of an instance."""
    dim = dims.parse(text)
    return dims.substitute(dim, {s: dims.symbol(f"{s} of the program") for s in dims.symbols(dim)})


def is_symbolic(args: Sequence[Any]) -> bool:
    """Whether an argument is a symbol, or has one in it."""
    items = [x for a in args for x in (a if isinstance(a, tuple) else (a,))]
    return any(not isinstance(x, int | str | float) or isinstance(x, AnyOrder) for x in items)


_DIVIDE = frozenset(("DimFloorDiv", "DimMod"))

_OF_NUMBERS = frozenset(
    ("+", "-", "*", "neg", "product", "Prim.dim", "Prim.number", *DIM_OPERATORS)
)

_OF_SYMBOLS = _OF_NUMBERS | {
    *("vec-of", "vec-empty", "vec-get", "vec-length", "vec-push", "vec-pop", "vec-append"),
    *("vec-set", "vec-remove", "unstable-fn"),
}
"""The primitives whose value for symbols is what it is for all numbers."""

_AT_PLACES = frozenset(("vec-get", "vec-set", "vec-remove"))
"""The primitives whose second argument is a place."""
