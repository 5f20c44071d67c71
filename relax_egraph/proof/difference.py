"""Differences: the part of a program that a step changes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relax_egraph.proof.term import Term, post_order
from relax_egraph.proof.trace import Step


@dataclass(frozen=True, slots=True)
class Difference:
    """The terms on one side of a step only, in topological order: `taken` away, and `fresh`.

    `shared` are the terms that both sides are built from.
    """

    taken: tuple[Term, ...]
    fresh: tuple[Term, ...]
    shared: tuple[Term, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms, the shared ones first."""
        return (*self.shared, *self.taken, *self.fresh)


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """`steps`, each after the steps that prove its premises."""
    for step in steps:
        yield from all_steps(step.before_it)
        yield step


def difference(step: Step) -> Difference:
    """The difference of both sides of `step`; terms must be hash-consed."""
    left, right = tuple(post_order(step.before)), tuple(post_order(step.after))
    of_left, of_right = set(left), set(right)
    taken = tuple(t for t in left if t not in of_right)
    fresh = tuple(t for t in right if t not in of_left)
    changed = {*taken, *fresh}
    used = (c for t in (*taken, *fresh) for c in t.operands)
    shared = dict.fromkeys(t for t in (*used, step.before, step.after) if t not in changed)
    return Difference(taken, fresh, tuple(shared))
