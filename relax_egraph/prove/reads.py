"""What an element reads: operands and numbers, within which sums, or by a choice."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir.dtypes import is_float
from relax_egraph.prove.functions import absolute
from relax_egraph.prove.polynomial import Index, Polynomial, variables_in
from relax_egraph.prove.reals import Comparison, excluded, symbols_of
from relax_egraph.prove.sums import Applied, Counted, Factor, Folded, Read, Sum
from relax_egraph.prove.tensors import Place


def has_reductions(a: Sum) -> bool:
    """Whether an element is made of more than single elements."""
    return any(
        t.binders
        or any(
            isinstance(f, Folded) or (isinstance(f, Applied) and any(map(has_reductions, f.args)))
            for f in t.factors
        )
        for t in a.terms
    )


@dataclass(frozen=True)
class Reading:
    """A tensor or a number that an element reads at an `index`, within sums over `extents`.

    `bound` are the names of the variables of these, and `choices` the tests by which it is read.
    `kinds` are those of the reductions around it; maxima and minima are of one kind.  It may be an
    operand of the function `of`.
    """

    name: str
    index: tuple[Polynomial, ...] = ()
    extents: tuple[Polynomial, ...] = ()
    bound: frozenset[str] = frozenset()
    choices: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    of: str = ""

    def within(self, binders: Sequence[Index]) -> "Reading":
        """The same in a sum over `binders`."""
        extents = (*self.extents, *(b.extent for b in binders))
        return replace(self, extents=extents, bound=self.bound.union(b.name for b in binders))


def readings(a: Sum, around: Reading = Reading("")) -> Iterator[Reading]:
    """All that an element reads, as the reading `around` it says."""
    for t in a.terms:
        inner = around.within(t.binders)
        for f in t.factors:
            match f:
                case Read(tensor, _, index):
                    yield replace(inner, name=tensor, index=index)
                    for place in places((*index,)):
                        yield from readings(place, replace(inner, of=""))
                case Applied("select", (condition, x, y)):
                    test = outline(condition)
                    yield from readings(condition, replace(inner, of=""))
                    for side, chosen in ((x, test), (y, f"not {test}")):
                        choices = inner.choices | {chosen}
                        yield from readings(side, replace(inner, choices=choices, of=""))
                case Applied(function, ()) if function.startswith("number "):
                    yield replace(inner, name=function)
                case Applied(function, args):
                    for arg in args:
                        of = function if arg.factor else ""
                        yield from readings(arg, replace(inner, of=of))
                case Folded(function, binders, _, of_all):
                    kind = "max" if function == "min" else function
                    within = replace(inner, kinds=inner.kinds | {kind}, of="")
                    yield from readings(of_all, within.within(binders))
                case Counted(value):
                    for place in places((value,)):
                        yield from readings(place, replace(inner, of=""))


def places(index: Iterable[Polynomial]) -> Iterator[Sum]:
    """The elements that an index is made of."""
    for p in index:
        yield from (v.value for v in variables_in(p) if isinstance(v, Place))


def outline(a: Sum) -> str:
    """What an element is computed of, without indices and conditions on them."""
    terms = (
        f"{t.coefficient}*{'.'.join(sorted(map(_outline, t.factors)))}{'Σ' * len(t.binders)}"
        for t in a.terms
    )
    return "+".join(sorted(terms))


def _outline(f: Factor) -> str:
    match f:
        case Read(tensor):
            return tensor
        case Counted():
            return "count"
        case Applied(function, args):
            return f"{function}({';'.join(map(outline, args))})"
        case Folded(function, _, _, of):
            return f"{function} of all {outline(of)}"


def inner_tests(a: Sum, *, inside: bool = False) -> Iterator[str]:
    """What in the reductions of an element, or in indices, makes plain numbers of NaN."""
    for t in a.terms:
        within = inside or bool(t.binders)
        for f in t.factors:
            match f:
                case Applied(_, args):
                    if within and is_test(f):
                        yield _outline(f)
                    for arg in args:
                        yield from inner_tests(arg, inside=within)
                case Folded(function, _, _, of):
                    if function not in _STRICT and f.dtype == "float":
                        yield _outline(f)
                    yield from inner_tests(of, inside=True)
                case Read(_, _, index):
                    for place in places(index):
                        yield from inner_tests(place, inside=True)
                case Counted(value):
                    for place in places((value,)):
                        yield from inner_tests(place, inside=True)


_STRICT = ("+", "*", "max", "min", "tensor")
"""Reductions that are NaN if an element is."""

TESTS = frozenset(("<", "<=", ">", ">=", "==", "!=", "isnan", "isinf", "isfinite"))
"""Functions that are ordinary truth values of NaN and infinities."""


def is_test(f: Applied) -> bool:
    """Whether a function of floats is an ordinary value of NaN: a test, or an integer."""
    if f.function.startswith("to "):
        return is_float(f.dtype) and not is_float(f.function.removeprefix("to "))
    return f.function in TESTS and f.dtype == "float"


def is_finite(name: str, numbers: Sequence[Comparison], of: str = "") -> bool:
    """Whether a number of a rule is assumed to be finite, or what the function `of` it ignores.

    The rule compares it, or its size.
    """
    sides = (side for c in numbers for side in (c.a, c.b))
    number = next((n for side in sides for n in symbols_of(side) if _name(n) == name), None)
    if number is None:
        return False
    size = absolute(number)
    return all(
        excluded(numbers, number, value) or excluded(numbers, size, abs(value))
        for value in (math.nan, math.inf, -math.inf)
        if value != _IGNORED.get(of)
    )


_IGNORED = {"max": -math.inf, "min": math.inf}
"""What a function ignores in an operand."""


def _name(number: Sum) -> str:
    f = number.factor
    return f.function if isinstance(f, Applied) else ""
