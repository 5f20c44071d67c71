"""Whether both sides are NaN and infinite for the same operands, also where reductions are.

Elements without reductions are compared by `specials`.  Of reductions, each side has to read the
elements that the other reads, by the same choices; what makes ordinary numbers of NaN in them has
to be computed of the same.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.prove import reads, specials
from relax_egraph.prove.conditions import Nonnegative, Zero
from relax_egraph.prove.effort import QUERY, Effort
from relax_egraph.prove.reads import Reading
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.specials import Assumptions
from relax_egraph.prove.sums import Sum


@dataclass
class Definedness:
    """Compares special values under what `solver` and `given` assume."""

    solver: Solver
    effort: Effort
    given: Assumptions

    def differs(self, a: Sum, b: Sum, dtype: str) -> str:
        """Where two elements of `dtype`, as they are written, may differ; empty if nowhere."""
        if {*reads.inner_tests(a)} != {*reads.inner_tests(b)}:
            return "the sides may differ where a reduction compares NaN or infinity"
        if a.key == b.key or not specials.functions_in(a) | specials.functions_in(b):
            return ""
        ours, theirs = list(reads.readings(a)), list(reads.readings(b))
        reduces = reads.has_reductions(a) or reads.has_reductions(b)
        if specials.tests_floats(a) or specials.tests_floats(b):
            if not self.agree(a, b, dtype, valued=True):
                return "the sides may differ where a comparison reads NaN or infinity"
        elif reduces and self.uses(ours) != self.uses(theirs) and not self.agree(a, b, dtype):
            return "the sides may differ where a reduction is of infinities"
        if not reduces:
            known = self.agree(a, b, dtype)
            differ = "differ" if known is False else "may differ"
            return "" if known else f"the sides {differ} where an operand is NaN, infinite or 0"
        unread = (*self.unread(theirs, ours), *self.unread(ours, theirs))
        return f"only one side reads {unread[0]}, or reads it in a sum of nothing" if unread else ""

    def agree(self, a: Sum, b: Sum, dtype: str, *, valued: bool = False) -> bool | None:
        """`specials.agree`, as one question."""
        self.effort.spend(QUERY)
        return specials.agree(a, b, dtype, self.given, valued=valued)

    def is_finite(self, r: Reading) -> bool:
        """Whether a number is assumed to be finite."""
        return reads.is_finite(r.name, self.given.numbers, r.of)

    def uses(self, of: Sequence[Reading]) -> Counter[tuple[str, frozenset[str]]]:
        """How often an element reads what: it cannot cancel where the other side reads it as often.

        Operands are infinite in exact rules, numbers of rules in all.
        """
        return Counter(
            (r.name, r.kinds)
            for r in of
            if (not self.is_finite(r) if r.name.startswith("number ") else not self.given.finite)
        )

    def unread(self, mine: Sequence[Reading], other: Sequence[Reading]) -> list[str]:
        """What an element reads of which an `other` one does not read all, by name."""
        return [r.name for r in mine if not self.is_finite(r) and not self.is_read(r, other)]

    def is_read(self, r: Reading, others: Sequence[Reading]) -> bool:
        """Whether `others` read what `r` does, by whichever choices."""
        of_it = [o for o in others if o.name == r.name]
        if any(o.choices <= r.choices and self.covers(o, r) for o in of_it):
            return True
        chosen = (o for o in of_it if not o.choices <= r.choices)
        covering = {o.choices for o in chosen if self.covers(o, r)}
        tests = {c for choices in covering for c in choices if not c.startswith("not ")}
        return any(
            any(choices <= r.choices | {test} for choices in covering)
            and any(choices <= r.choices | {f"not {test}"} for choices in covering)
            for test in tests
        )

    def covers(self, a: Reading, b: Reading) -> bool:
        """Whether `a` is of the elements that `b` is of, and in a sum of nothing only where `b` is.

        An index with a variable of a sum is taken to be any.
        """
        fixed = [(x, y) for x, y in zip(a.index, b.index, strict=True) if not x.variables & a.bound]
        if any(y.variables & b.bound for _, y in fixed):
            return False
        if not all(self.solver.holds(Zero(x - y)) for x, y in fixed):
            return False
        more = [e for e in a.extents if e not in b.extents]
        if not more:
            return True
        with self.solver.scope([Nonnegative(e - 1) for e in b.extents]):
            return all(self.solver.holds(Nonnegative(e - 1)) for e in more)
