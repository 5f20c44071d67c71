"""Phases and budgets of a run."""

from dataclasses import dataclass
from math import inf

from relax_egraph.base.parameters import (
    COUNT,
    NAME,
    SECONDS,
    check_fields,
    collection,
    integer,
    number,
    optional,
)
from relax_egraph.egraph.rulebook.book import OWN_PHASE, RuleBook
from relax_egraph.egraph.rulebook.scope import DEMAND, near
from relax_egraph.rules import FAMILIES

REWRITE = "rewrite"
"""The phase of all families without a phase of their own, and of the rules of users' files."""

WEIGHTS = "weights"
"""The family that stores weights in other dtypes; their accuracy is measured before it runs."""

IMAGES = "images"
"""The family that permutes images."""

_MOVING = ("movement", "shape", "layout", "along", "windows")
"""The families that run again with `IMAGES`: they move permutations past operators."""

_OPERATORS_PASSED = 200
"""The most iterations with `IMAGES`: in each one a permutation passes an operator."""

OVERSTEP = 2
"""An e-graph with more than this many times the allowed nodes is given up."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on a run, checked between iterations; a bound costs rewrites, never the program.

    `nodes` counts nodes of operators; `seconds` is for the whole run without the declaration of
    rules; `iterations` is for each phase.  `memory` is the address space of a worker process, in
    bytes: a worker that needs more dies, and a worker that takes much longer than `seconds` is
    killed.
    """

    nodes: int = 20_000
    seconds: float = 10.0
    iterations: int = 40
    memory: int = 4 << 30

    def __post_init__(self) -> None:
        check_fields(self, _BUDGET)


_BUDGET = {
    "nodes": integer("a number of nodes, 0 or more", 0),
    "seconds": SECONDS,
    "iterations": integer("a number of iterations, 0 or more", 0),
    "memory": integer("a number of bytes, 1 or more", 1),
}


@dataclass(frozen=True, slots=True)
class Phase:
    """Rulesets that are applied together until nothing changes or a bound is reached.

    A ruleset is a family of the book, ``lower``, or a ruleset of a user's file.  ``None`` stands
    for the bound of the run's budget.  `nodes` bounds the nodes of the e-graph, `growth` their
    ratio to the nodes at the start of the phase.  A rule with more matches in one iteration than
    `match_limit`, and than there are nodes, pauses for `ban_length` iterations; both double with
    each pause.
    """

    name: str
    rulesets: tuple[str, ...]
    iterations: int | None = None
    nodes: float | None = None
    seconds: float = inf
    growth: float = inf
    match_limit: float = 1_000
    ban_length: int = 5

    def __post_init__(self) -> None:
        check_fields(self, _PHASE)


_AT_LEAST_ONE = number("a number, 1 or more", lambda value: value >= 1)

_PHASE = {
    "name": NAME,
    "rulesets": collection('a tuple of rulesets, such as ("canon", "fma")', NAME, tuple),
    "iterations": optional(COUNT),
    "nodes": optional(_AT_LEAST_ONE),
    "seconds": SECONDS,
    "growth": _AT_LEAST_ONE,
    "match_limit": _AT_LEAST_ONE,
    "ban_length": COUNT,
}


Schedule = tuple[Phase, ...]


def default_schedule(book: RuleBook) -> Schedule:
    """All rewrites of `book` together, then images, weights, lowering to kernels, and fusion.

    Rewrites that are demanded run before: others see only what these have left.

    Lowering has no node budget: it is linear, and without it there are no kernels to extract.
    """
    used = {"lower", *(rule.ruleset for rule in book.rewrites)}
    rewrites = tuple(name for name in book.rulesets if name not in OWN_PHASE)
    own = tuple(
        _images(rewrites)
        if name == IMAGES
        else Phase(name, (name,), nodes=inf, growth=8.0, match_limit=inf)
        for name in OWN_PHASE
        if name in used.intersection(book.rulesets)
    )
    demanded = Phase(DEMAND, (DEMAND,), nodes=inf, match_limit=inf)
    first = (demanded,) if DEMAND in book.rulesets else ()
    return (*first, Phase(REWRITE, rewrites), *own)


def _images(rewrites: tuple[str, ...]) -> Phase:
    """The phase of `IMAGES`, with the families that move permutations and the rules of users."""
    others = (name for name in rewrites if name in _MOVING or name not in FAMILIES)
    return Phase(IMAGES, (*others, IMAGES), iterations=_OPERATORS_PASSED)


def before_weights(schedule: Schedule) -> tuple[Schedule, Schedule]:
    """`schedule`, split before the first phase that stores weights."""
    first = (k for k, phase in enumerate(schedule) if WEIGHTS in phase.rulesets)
    at = next(first, len(schedule))
    return schedule[:at], schedule[at:]


def check_schedule(schedule: Schedule, book: RuleBook) -> Schedule:
    """`schedule`; raises `ValueError` if it is empty or names an unknown ruleset."""
    if not schedule:
        raise ValueError("the schedule has no phase")
    for phase in schedule:
        for name in phase.rulesets:
            if name not in book.rulesets:
                note = near(name, book.rulesets) or f"there are {', '.join(book.rulesets)}"
                raise ValueError(f"phase {phase.name}: no ruleset is named {name!r}; {note}")
    return schedule
