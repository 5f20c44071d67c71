"""Extraction, from a view to a program with its cost and the proof of how good that is."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.egraph.view import Choice, ClassId, Program, View
from relax_egraph.errors import ExtractionError
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.certificate import certify
from relax_egraph.extract.cost import REFERENCE_PROFILE, Costs, Hints, Profile
from relax_egraph.extract.cuts import Bounds
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.problem import Candidate, Problem, computable
from relax_egraph.extract.select import select
from relax_egraph.extract.ways import Way, Ways, ways_of


@dataclass(frozen=True, slots=True)
class Extraction:
    """A program, and how good it is proven to be among the kernels that were weighed.

    `cost` and `bound` are seconds; `gap` is the share of the cost that a better choice could
    save at most.  `status` is ``optimal``, ``gap 1.3 %, time limit`` or ``greedy: `` and why;
    `bound_source` says who claims the bound.  `candidates` were weighed against each other,
    `kernels` of distinct structure the library was asked about, and `dropped` cuts met a
    bound of the enumeration.
    """

    program: Program
    cost: float
    bound: float
    gap: float
    status: str
    bound_source: str
    seconds: float
    candidates: int
    kernels: int
    dropped: int


def extract(
    view: View,
    library: KernelLibrary,
    *,
    profile: Profile = REFERENCE_PROFILE,
    hints: Hints | None = None,
    time_limit: float = 10.0,
    bounds: Bounds | None = None,
) -> Extraction:
    """The cheapest program that makes the roots of `view` by kernels that `library` runs.

    Every class that the program needs, a leaf too, is made by exactly one `Choice`.  `hints` are
    sizes of dimension symbols, 64 for one without; `time_limit` is the solver's, in seconds, and
    reaching it gives the best program so far.  Raises `ExtractionError` if a root has no program.
    """
    started = time.perf_counter()
    costs = Costs(profile, hints)
    catalogue = Catalogue(view.classes, library, costs)
    ways = ways_of(view, catalogue, costs, bounds or Bounds())
    listed, problem = _problem(view, ways)
    made = computable(problem)
    for place, root in enumerate(view.roots):
        if root not in made and root not in ways.given.choice:
            raise ExtractionError(_unmade(view, ways.of, made, place))
    selection = select(problem, time_limit=time_limit)
    certify(problem, selection)
    chosen = tuple(listed[number] for number in selection.chosen)
    read = (k for choice in chosen for k in choice.inputs)
    given = ways.given.needed((*read, *view.roots))
    return Extraction(
        program=(*given, *chosen),
        cost=selection.cost,
        bound=selection.bound,
        gap=selection.gap,
        status=selection.status,
        bound_source=selection.bound_source,
        seconds=time.perf_counter() - started,
        candidates=len(listed),
        kernels=catalogue.asked,
        dropped=ways.dropped,
    )


def _problem(view: View, ways: Ways) -> tuple[list[Choice], Problem]:
    """The choices, and the problem of choosing among them: what is given is not in it."""
    given = ways.given.choice.keys()
    found = [(c, way) for c, options in ways.of.items() for way in options]
    candidates = tuple(
        Candidate(c, frozenset(way.choice.inputs) - given, way.cost) for c, way in found
    )
    roots = tuple(root for root in view.roots if root not in given)
    return [way.choice for _, way in found], Problem(candidates, roots)


def _unmade(
    view: View, ways: Mapping[ClassId, tuple[Way, ...]], made: frozenset[ClassId], place: int
) -> str:
    root = view.roots[place]
    todo, seen = [root], {root}
    empty: list[ClassId] = []
    while todo:
        c = todo.pop()
        found = ways.get(c, ())
        if not found:
            empty.append(c)
        inputs = {k for way in found for k in way.choice.inputs} - made - seen
        seen |= inputs
        todo.extend(inputs)
    info = view.classes[root].struct_info
    said = f"root {place}, class {root}, {info} has no finite program"
    if not empty:
        return f"{said}: every way to make it needs itself"
    c = min(empty)
    return f"{said}: nothing makes class {c}, {view.classes[c].struct_info}"
