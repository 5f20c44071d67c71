"""A cut: the computation of one kernel, from the tensors that it loads to its result.

Kernel classes are computed by *terms*, which are nodes in a compact form.  A cut has one term for
each kernel class in it, so that a class that is used twice is computed once: a cut is a DAG.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.view import ClassId, ENode

Structure: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, tuple[int, ...]], ...]]
"""A cut up to its classes: the symbols of its loads, and of its steps with their operands."""

TOGETHER = "together"
"""The operator of a term on top of several values, which are the outputs of the cut."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One way to compute the class `owner` inside a kernel.

    Either a load of the class `source`, or (`source` is -1) an operator on the classes `children`.
    Terms that differ only in their classes have the same `symbol`.  `seconds` is the time of the
    arithmetic, at peak.
    """

    owner: ClassId
    node: ENode
    symbol: int
    children: tuple[ClassId, ...] = ()
    source: ClassId = -1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The computation of one kernel.

    `leaves` are the classes that it loads, in order of first use.  `steps` are its operators in
    topological order; an operand ``-1 - i`` is leaf ``i``, an operand ``j`` is step ``j``.
    """

    terms: Mapping[ClassId, Term]
    leaves: tuple[ClassId, ...]
    steps: tuple[tuple[Term, tuple[int, ...]], ...]
    seconds: float

    @property
    def top(self) -> ClassId:
        """The kernel class that the cut computes, or loads."""
        return self.steps[-1][0].owner if self.steps else next(iter(self.terms))

    def structure(self, symbols: Mapping[ClassId, int]) -> Structure:
        """The structure, equal for cuts of the same kernel; `symbols` are those of the leaves."""
        return (
            tuple(map(symbols.__getitem__, self.leaves)),
            tuple([(term.symbol, operands) for term, operands in self.steps]),
        )


def trace(top: ClassId, terms: Mapping[ClassId, Term]) -> Cut:
    """The cut of class `top` by those of `terms` that it needs, which must be acyclic."""
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

    Where two parts compute a class by different terms, that of the first part is used throughout:
    all that it needs is the first part's too, so the cut stays acyclic.
    """
    terms: dict[ClassId, Term] = {}
    for part in reversed(parts):
        terms.update(part.terms)
    if term.owner in terms:
        return None
    terms[term.owner] = term
    agree = all([terms[c] is own for part in parts[1:] for c, own in part.terms.items()])
    if not parts or not agree:
        return trace(term.owner, terms)
    of_child = {part.top: part for part in parts}
    return _stacked(term, terms, [of_child[c] for c in dict.fromkeys(term.children)])


def _stacked(term: Term, terms: Mapping[ClassId, Term], parts: Sequence[Cut]) -> Cut:
    """`term` on top of `parts`, one for each of its children, that agree: what `trace` returns.

    The steps of a part keep their order, without those that an earlier part has.
    """
    first, *others = parts
    steps = list(first.steps)
    tops = {first.top: len(steps) - 1}
    leaves = {leaf: -1 - number for number, leaf in enumerate(first.leaves)}
    places = {step.owner: number for number, (step, _) in enumerate(steps)} if others else {}
    for part in others:
        loaded = [leaves.setdefault(leaf, -1 - len(leaves)) for leaf in part.leaves]
        computed: list[int] = []
        for step, operands in part.steps:
            number = places.setdefault(step.owner, len(steps))
            computed.append(number)
            if number == len(steps):
                own = [computed[k] if k >= 0 else loaded[-1 - k] for k in operands]
                steps.append((step, tuple(own)))
        tops[part.top] = computed[-1] if computed else loaded[0]
    steps.append((term, tuple([tops[c] for c in term.children])))
    return Cut(terms, tuple(leaves), tuple(steps), sum([step.seconds for step, _ in steps]))
