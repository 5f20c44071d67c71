"""A cut: what one kernel would compute, from tensors it loads up to one value.

Kernel classes are made by *terms*, nodes read once.  A cut takes one term for each kernel
class in it, so that a class that is used twice is computed once; the cut is a dag.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.view import ClassId, ENode

Structure: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, tuple[int, ...]], ...]]
"""A cut without its classes: symbols of the loads, and of the steps with their operands."""

TOGETHER = "together"
"""The operator of a term on top of several values: a cut that ends in it gives them all."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One way to make the value of class `owner` inside a kernel.

    Either a load, of the class `source`; or (`source` is -1) an operator on the values of the
    classes `children`.  `symbol` is a number that two terms share if they differ in classes alone.
    `seconds` are the arithmetic, at peak.
    """

    owner: ClassId
    node: ENode
    symbol: int
    children: tuple[ClassId, ...] = ()
    source: ClassId = -1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A kernel in the making.

    `leaves` are the classes it loads, in order of first use.  `steps` are its operators in an
    order in which they can run; of their operands ``-1 - i`` is leaf ``i`` and ``j`` is step ``j``.
    """

    terms: Mapping[ClassId, Term]
    leaves: tuple[ClassId, ...]
    steps: tuple[tuple[Term, tuple[int, ...]], ...]
    seconds: float

    def structure(self, symbols: Mapping[ClassId, int]) -> Structure:
        """What two cuts share that are the same kernel; `symbols` are those of the leaves."""
        return (
            tuple(symbols[leaf] for leaf in self.leaves),
            tuple((term.symbol, operands) for term, operands in self.steps),
        )


def trace(top: ClassId, terms: Mapping[ClassId, Term]) -> Cut:
    """The cut that makes class `top` by those of `terms` that it needs; they have no cycle."""
    numbers: dict[ClassId, int] = {}
    leaves: dict[ClassId, int] = {}
    steps: list[tuple[Term, tuple[int, ...]]] = []
    stack = [top]
    while stack:
        c = stack[-1]
        if c in numbers:
            stack.pop()
            continue
        term = terms[c]
        if term.source >= 0:
            numbers[c] = -1 - leaves.setdefault(term.source, len(leaves))
            continue
        missing = [child for child in term.children if child not in numbers]
        if missing:
            stack.extend(reversed(missing))
            continue
        numbers[c] = len(steps)
        steps.append((term, tuple([numbers[child] for child in term.children])))
    return Cut(
        {c: terms[c] for c in numbers},
        tuple(leaves),
        tuple(steps),
        sum([term.seconds for term, _ in steps]),
    )


def grow(term: Term, parts: Sequence[Cut]) -> Cut | None:
    """`term` on top of cuts of its children; ``None`` if one of them contains its class.

    Where two parts make a class in two ways, the first part's way is taken throughout: below
    it everything is the first part's too, so there is still no cycle.
    """
    terms: dict[ClassId, Term] = {}
    for part in reversed(parts):
        terms.update(part.terms)
    if term.owner in terms:
        return None
    terms[term.owner] = term
    return trace(term.owner, terms)
