"""Partial matches of a rule: the conjuncts that hold, and the failures of the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from relax_egraph.egraph.recording.database import Row
from relax_egraph.reasons.why_not.plan import Conjunct, Plan

How: TypeAlias = Literal[
    "lacking", "unused", "swapped", "attribute", "operand", "behind", "bare", "fact", "false"
]
"""The kind of failure of a conjunct.

For a node: its class is ``lacking`` the operator; its operands are ``unused`` by the operator; the
node exists with operands ``swapped``, with another ``attribute`` or ``operand``, or ``behind`` a
broadcast or cast; or the pattern has a broadcast or cast, and the value is ``bare``.  A ``fact`` is
unknown, or has another value.  A computation is ``false``.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A conjunct that does not hold for the values `known`, by place.

    `row` is the nearest row; `through` is the operator that the row is behind.  `would` is the best
    match of a rule that would deduce the conjunct.
    """

    conjunct: Conjunct
    how: How
    known: Mapping[int, Any]
    row: Row | None = None
    through: str = ""
    would: "Partial | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """A match of some conjuncts of `plan`, with the `values` of variables that they bind.

    Conjuncts that depend on a failure are neither in `matched` nor in `failures`.
    """

    plan: Plan
    values: Mapping[str, Any]
    matched: tuple[Conjunct, ...]
    failures: tuple[Failure, ...]
    weight: tuple[int, int, int] = field(default=(0, 0, 0))

    @property
    def matches(self) -> bool:
        """Whether all conjuncts hold."""
        return len(self.matched) == len(self.plan.conjuncts)

    @property
    def nodes(self) -> int:
        """The number of operators that match, here and in rules that would deduce a failure."""
        own = sum(c.kind == "node" for c in self.matched)
        return own + sum(f.would.nodes for f in self.failures if f.would)

    @property
    def is_near(self) -> bool:
        """Whether an operator matches, or matches but for an attribute or operand."""
        return self.nodes > 0 or any(f.row is not None and f.how != "bare" for f in self.failures)

    @property
    def of_nodes(self) -> int:
        """The number of operators in the plan and in rules that would deduce a failure."""
        return self.plan.nodes + sum(f.would.of_nodes for f in self.failures if f.would)
