"""What an element reads: operands and numbers, within which sums, or by a choice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.prove.polynomial import Polynomial
from relax_egraph.prove.reals import Comparison, as_float
from relax_egraph.prove.sums import Applied, Counted, Folded, Read, Sum


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
    """A tensor or a number that an element reads, within sums over `extents`, or by a choice.

    `kinds` are those of the reductions around it; maxima and minima are of one kind.
    """

    name: str
    extents: tuple[Polynomial, ...]
    chosen: bool
    kinds: frozenset[str]


def readings(
    a: Sum,
    extents: tuple[Polynomial, ...] = (),
    chosen: bool = False,
    kinds: frozenset[str] = frozenset(),
) -> Iterator[Reading]:
    """All that an element reads."""
    for t in a.terms:
        inner = (*extents, *(b.extent for b in t.binders))
        guarded = chosen or bool(t.where)
        for f in t.factors:
            match f:
                case Read(tensor):
                    yield Reading(tensor, inner, guarded, kinds)
                case Applied("select", (condition, x, y)):
                    yield from readings(condition, inner, guarded, kinds)
                    yield from readings(x, inner, True, kinds)
                    yield from readings(y, inner, True, kinds)
                case Applied(function, ()) if function.startswith("number "):
                    yield Reading(function, inner, guarded, kinds)
                case Applied(_, args):
                    for arg in args:
                        yield from readings(arg, inner, guarded, kinds)
                case Folded(function, binders, where, of):
                    within = (*inner, *(b.extent for b in binders))
                    folded = kinds | {"max" if function == "min" else function}
                    yield from readings(of, within, guarded or bool(where), folded)
                case Counted():
                    pass


def is_finite(name: str, numbers: Sequence[Comparison]) -> bool:
    """Whether a number of a rule is assumed to be finite."""
    bounds = [c for c in numbers if f"{name}:" in c.a.key or f"{name}:" in c.b.key]
    above = [c for c in bounds if (n := as_float(c.b)) is not None and "<" in c.kind and n < 1e300]
    strict = [c for c in bounds if c.kind == "<"]
    return bool(above) or len(strict) >= 2
