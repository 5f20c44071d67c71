"""A partial match of a rule: what of it holds, and of the rest why it does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from relax_egraph.egraph.recording.database import Row
from relax_egraph.reasons.why_not.plan import Conjunct, Plan

How: TypeAlias = Literal[
    "lacking", "unused", "swapped", "attribute", "operand", "behind", "bare", "fact", "false"
]
"""How a conjunct fails.

A node: its class is ``lacking`` the operator; its operands are ``unused`` by it; it is there with
operands ``swapped``, with another ``attribute`` or ``operand``, or ``behind`` a broadcast or cast;
it is such a one, and the value is ``bare``.  A ``fact`` is not known, or another; what is computed
is ``false``.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A conjunct that does not hold, where `known` are the values of its places so far.

    `row` is the nearest that there is; `through` is the operator that it is behind.  `would` is
    the best match of a rule that would deduce it.
    """

    conjunct: Conjunct
    how: How
    known: Mapping[int, Any]
    row: Row | None = None
    through: str = ""
    would: "Partial | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """The variables of `plan` as far as they have `values`, and which conjuncts do not hold.

    What depends on a failure alone is neither held nor failed.
    """

    plan: Plan
    values: Mapping[str, Any]
    held: tuple[Conjunct, ...]
    failures: tuple[Failure, ...]
    weight: tuple[int, int, int] = field(default=(0, 0, 0))

    @property
    def matches(self) -> bool:
        """Whether all of it holds."""
        return len(self.held) == len(self.plan.conjuncts)

    @property
    def nodes(self) -> int:
        """The operators that match, with those of the rule that would deduce what is missing."""
        own = sum(c.kind == "node" for c in self.held)
        return own + sum(f.would.nodes for f in self.failures if f.would)

    @property
    def is_near(self) -> bool:
        """Whether an operator matches, or is there with another attribute or operand."""
        return self.nodes > 0 or any(f.row is not None and f.how != "bare" for f in self.failures)

    @property
    def of_nodes(self) -> int:
        """The operators of which these are."""
        return self.plan.nodes + sum(f.would.of_nodes for f in self.failures if f.would)

    @property
    def deepest(self) -> "Partial":
        """The match of the rule in which nothing is missing that another rule would deduce."""
        would = self.failures[0].would if self.failures else None
        return self if would is None else would.deepest
