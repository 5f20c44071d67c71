"""Extraction, from a view to a program with its cost and the proof of how good that is."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.binders import first_casts, mentioned
from relax_egraph.egraph.view import OPAQUE, Choice, ClassId, ENode, Program, View
from relax_egraph.errors import ExtractionError
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.certificate import certify
from relax_egraph.extract.cuts import Bounds
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.prices import Prices
from relax_egraph.extract.pricing import Hints, Pricing
from relax_egraph.extract.problem import Candidate, Problem, computable
from relax_egraph.extract.profile import REFERENCE_PROFILE, Profile
from relax_egraph.extract.select import select
from relax_egraph.extract.several import Several, several_of
from relax_egraph.extract.ways import Way, Ways, ways_of
from relax_egraph.ir.folding import GROWTH_LIMIT


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
    prices: Prices | None = None,
    growth_limit: int = GROWTH_LIMIT,
    time_limit: float = 10.0,
    bounds: Bounds | None = None,
) -> Extraction:
    """The cheapest program that makes the roots of `view` by kernels that `library` runs.

    Every class that the program needs, a leaf too, is made by exactly one `Choice`.  `hints` are
    sizes of dimension symbols, 64 for one without, or several such with their weights; `prices`
    take the place of the model's; `growth_limit` is how many bytes larger than its operands a
    constant may be that is computed at build time.  `time_limit` is the solver's, in seconds, and
    reaching it gives the best program so far.  Raises `ExtractionError` if a root has no program.
    """
    started = time.perf_counter()
    pricing = Pricing(profile, hints, prices)
    catalogue = Catalogue(view.classes, library, pricing)
    bounds = bounds or Bounds()
    ways = ways_of(view, catalogue, pricing, bounds, growth_limit)
    listed, problem = _problem(view, ways, several_of(view, ways, catalogue, bounds))
    made = computable(problem)
    for place, root in enumerate(view.roots):
        if root not in made and root not in ways.given.choice:
            raise ExtractionError(_unmade(view, ways.of, made, place))
    selection = select(problem, time_limit=time_limit)
    certify(problem, selection)
    chosen = _chosen([listed[number] for number in selection.chosen], catalogue)
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


_Listed: TypeAlias = Choice | Several | tuple[Several, ClassId]
"""A way to make a class; a kernel that makes several, and what takes one of them from it."""


def _problem(view: View, ways: Ways, several: Sequence[Several]) -> tuple[list[_Listed], Problem]:
    """What there is to choose among, with the problem of choosing: what is given is not in it.

    What mentions a symbol that a match_cast of the view binds needs that too.
    """
    given = ways.given.choice.keys()
    binders = _binders(view, ways)

    def needed(choice: Choice) -> frozenset[ClassId]:
        inputs = frozenset(choice.inputs) - given
        if not binders:
            return inputs
        return inputs | {binders[s] for s in mentioned(choice, view) if s in binders}

    listed: list[_Listed] = []
    candidates: list[Candidate] = []
    for c, options in ways.of.items():
        for way in options:
            listed.append(way.choice)
            candidates.append(Candidate(c, needed(way.choice), way.cost))
    for together, kernel in enumerate(several, max(view.classes, default=0) + 1):
        listed.append(kernel)
        candidates.append(Candidate(together, needed(kernel.way.choice), kernel.way.cost))
        for c in kernel.parts:
            listed.append((kernel, c))
            candidates.append(Candidate(c, frozenset({together}), 0.0))
    roots = tuple(root for root in view.roots if root not in given)
    return listed, Problem(tuple(candidates), roots)


def _binders(view: View, ways: Ways) -> dict[str, ClassId]:
    """The class of the match_cast that binds each symbol, of those that no leaf tells."""
    casts = first_casts(view)
    return {
        symbol: c
        for c, options in ways.of.items()
        for way in options
        if isinstance(how := way.choice.how, ENode) and how.op == OPAQUE
        for symbol, cast in casts.items()
        if cast is view.opaque[how.key]
    }


def _chosen(listed: Sequence[_Listed], catalogue: Catalogue) -> tuple[Choice, ...]:
    """The choices in order; of what a kernel makes, those classes that are taken from it."""
    taken: dict[int, set[ClassId]] = {}
    for each in listed:
        if isinstance(each, tuple):
            taken.setdefault(id(each[0]), set()).add(each[1])
    return tuple(
        each.choice(taken[id(each)], catalogue) if isinstance(each, Several) else each
        for each in listed
        if not isinstance(each, tuple)
    )


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
