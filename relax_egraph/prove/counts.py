"""Sums of what does not depend on their variables: that many times it, divided by as many."""

from dataclasses import dataclass, replace

from relax_egraph.prove.conditions import Nonnegative, names_in
from relax_egraph.prove.functions import times
from relax_egraph.prove.reading import Undecided
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.sums import (
    NOTHING,
    Applied,
    Counted,
    Factor,
    Sum,
    Term,
    add,
    names_of_factor,
    single,
)
from relax_egraph.prove.tensors import counted


@dataclass(frozen=True)
class Counts:
    """Counts under what `solver` assumes; raises `Undecided` if a divisor may be 0."""

    solver: Solver

    def taken(self, a: Sum) -> Sum:
        """`a` without variables that nothing in a term depends on."""
        result = NOTHING
        for t in a.terms:
            used = frozenset[str]().union(*map(names_of_factor, t.factors), *map(names_in, t.where))
            free = [b for b in t.binders if b.name not in used]
            whole = Sum((replace(t, binders=tuple(b for b in t.binders if b.name in used)),))
            for b in free:
                whole = times(whole, counted(b.extent))
            for u in whole.terms:
                result = add(result, Sum((self.cancelled(u),)))
        return result

    def cancelled(self, t: Term) -> Term:
        """`t` without counts that are multiplied and divided by."""
        left: list[Factor] = list(t.factors)
        for f in t.factors:
            inverse = Applied("inverse", (single(f),))
            if isinstance(f, Counted) and f in left and inverse in left:
                positive = Nonnegative(f.value - 1)
                if self.solver.holds(positive):
                    left.remove(f)
                    left.remove(inverse)
                elif not self.solver.impossible((positive,)):
                    raise Undecided(positive)
        return replace(t, factors=tuple(left))


def divides_by_counts(a: Sum) -> bool:
    """Whether a term is divided by a number of elements."""
    inverses = (f for t in a.terms for f in t.factors if isinstance(f, Applied))
    return any(f.function == "inverse" and isinstance(f.args[0].factor, Counted) for f in inverses)
