"""The rules that deduce each relation, and the variables that a deduction fixes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relax_egraph.egraph.rulebook.forms import Atom
from relax_egraph.egraph.rulebook.rule import Direction, Row, deducers
from relax_egraph.reasons.why_not.plan import ENGINE, OF_VALUES, Plan
from relax_egraph.verify.instances.query import literal_of


@dataclass(frozen=True)
class Deductions:
    """Rules by the relations that they deduce.

    `declared` are the names that rule files declare; the rules `left_out` are not in the run.
    """

    patterns: tuple[Direction, ...]
    declared: frozenset[str]
    left_out: frozenset[str]

    @cached_property
    def deducing(self) -> Mapping[str, Sequence[tuple[Direction, Row]]]:
        """By relation or function the rules that deduce it, each with the row that it adds."""
        return deducers(self.patterns, besides=_OF_ENGINE)


_OF_ENGINE = (*ENGINE, "shape-claim", "dtype-claim", *OF_VALUES)


def preset_of(plan: Plan, row: Row, known: Mapping[int, Any]) -> Mapping[str, Any] | None:
    """The values of variables with which `plan` deduces `row` with the `known` values.

    It is ``None`` if `plan` deduces other rows only, or if the values do not fix its root.
    """
    preset: dict[str, Any] = {}
    for k, item in enumerate((*row.args, row.value)):
        if k not in known or not isinstance(item, Atom):
            continue
        literal = literal_of(item.text)
        arg = plan.names.get(item.text) if literal is None else literal
        if isinstance(arg, str):
            if preset.setdefault(arg, known[k]) != known[k]:
                return None
        elif arg is not None and arg.value != known[k]:
            return None
    return preset if all(name in preset for name in plan.focus[:1]) else None
