"""Phases and budgets of a run, as data."""

from dataclasses import dataclass

from relax_egraph.egraph.rulebook import TOGETHER, RuleBook

REWRITE = "rewrite"
"""The phase in which the families of the book and the rules of users' files run together."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on a run, checked between iterations; reaching one loses rewrites, not the program.

    `nodes` counts nodes of operators, `seconds` is for the whole run, `iterations` for each phase.
    """

    nodes: int = 100_000
    seconds: float = 10.0
    iterations: int = 40


@dataclass(frozen=True, slots=True)
class Phase:
    """Rulesets that are applied together; ``(run ruleset)`` applies them.

    The phase may grow to `growth` times the nodes it began with even beyond the node budget:
    lowering is linear, and without it there is no kernel to extract.
    """

    name: str
    ruleset: str
    growth: float = 0.0


def phases_of(book: RuleBook) -> tuple[Phase, ...]:
    """The phases of a run with `book`, in order."""
    fusion = (Phase("fusion", "fusion", growth=4.0),) if "fusion" in book.families else ()
    return (Phase(REWRITE, TOGETHER), Phase("lower", "lower", growth=4.0), *fusion)
