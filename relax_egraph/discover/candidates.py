"""Candidates: equations of two terms as rewrites, from the larger term to the smaller."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from relax_egraph.discover.costs import cost_of
from relax_egraph.discover.evaluation import Values
from relax_egraph.discover.terms import (
    Literal,
    Number,
    Term,
    Variable,
    leaves,
    parts,
    replaced,
    size_of,
    variables,
    written,
)
from relax_egraph.discover.worlds import TENSORS

_ANY_NUMBER = 3.0
"""A constant that no rule treats specially."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The equation ``left = right``, in the `worlds` (by position) where `left` has a value.

    `gain` is what the rewrite saves, in seconds, if each operator is a kernel of its own.
    """

    left: Term
    right: Term
    worlds: tuple[int, ...]
    gain: float

    def __str__(self) -> str:
        return f"{written(self.left)} = {written(self.right)}"

    def where(self, guard: str) -> "Candidate":
        """The instance in which variables are numbers that are constant numbers by `guard`."""
        names = set(re.findall(r"\(const-scalar (\w+)\)", guard))
        left, right = (
            replaced(side, lambda v: Number(_ANY_NUMBER) if v.name in names else v)
            for side in (self.left, self.right)
        )
        return replace(self, left=left, right=right)

    @property
    def generality(self) -> tuple[float | str, ...]:
        """A sort key: small equations first, of these those of many variables and few numbers."""
        every = [*parts(self.left), *parts(self.right)]
        fixed = sum(isinstance(part, Number | Literal) for part in every)
        size = size_of(self.left) + size_of(self.right)
        return size, -len(variables(self.left)), fixed, -self.gain, str(self)


def candidate(term: Term, known: Term, values: Mapping[Term, Values]) -> Candidate | None:
    """The rewrite of `term` to the smaller term `known`, which has the same values.

    Of two terms of one size and with values in the same worlds, the left side is the more expensive
    one.  It is ``None`` if the right side has a variable or a number that the left side lacks.
    """
    left, right, worlds = term, known, _worlds(term, values)
    gain = cost_of(left, worlds[0], values) - cost_of(right, worlds[0], values)
    same = size_of(left) == size_of(right) and _worlds(right, values) == worlds
    if gain < 0 and same:
        left, right, gain = right, left, -gain
    if not set(leaves(right)) <= set(leaves(left)):
        return None
    names = dict(zip(_tensors(left), TENSORS, strict=False))
    left, right = (replaced(side, lambda v: names.get(v, v)) for side in (left, right))
    return Candidate(left, right, worlds, gain)


def _worlds(term: Term, values: Mapping[Term, Values]) -> tuple[int, ...]:
    return tuple(k for k, value in enumerate(values[term]) if value is not None)


def _tensors(term: Term) -> list[Variable]:
    return [v for v in variables(term) if v.sort == "Tensor"]


def distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The `candidates` up to the names of their variables, the most general first."""
    first: dict[tuple[Term, Term], Candidate] = {}
    for one in sorted(candidates, key=lambda c: c.generality):
        first.setdefault(_canonical(one), one)
    return list(first.values())


def _canonical(one: Candidate) -> tuple[Term, Term]:
    """Both sides, with variables that are numbered by sort in the order of occurrence."""
    names: dict[Variable, Variable] = {}
    count: dict[str, int] = defaultdict(int)
    for variable in variables(one.left):
        names[variable] = Variable(f"{variable.sort}{count[variable.sort]}", variable.sort)
        count[variable.sort] += 1
    left, right = (replaced(side, names.__getitem__) for side in (one.left, one.right))
    return left, right
