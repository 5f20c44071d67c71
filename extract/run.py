"""Extraction: from a view of a saturated e-graph to a program, its cost and a proven bound."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from relax_egraph.egraph.binders import first_casts, mentioned
from relax_egraph.egraph.node import OPAQUE, Node
from relax_egraph.egraph.view import Choice, ClassId, Program, View
from relax_egraph.errors import ExtractionError
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.certificate import certify
from relax_egraph.extract.choices import ChoiceTable, PricedChoice, choice_table
from relax_egraph.extract.cuts import Bounds
from relax_egraph.extract.effort import DEFAULT, Effort
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.multi_output import MultiOutputKernel, multi_output_kernels
from relax_egraph.extract.offers import Offers
from relax_egraph.extract.prices import Prices
from relax_egraph.extract.pricing import Hints, Pricing
from relax_egraph.extract.problem import Candidate, Problem, computable
from relax_egraph.extract.profile import REFERENCE_PROFILE, Profile
from relax_egraph.extract.select import select
from relax_egraph.ir.folding import GROWTH_LIMIT


@dataclass(frozen=True, slots=True)
class Extraction:
    """A program, with a proof of how good it is among all candidates.

    `cost` and `bound` are seconds of one run; `gap` is the share of the cost that a better program
    could save at most, and `bound_source` names the method that proves it.  `status` is
    ``optimal``, ``gap 1.3 %, time limit``, ``gap 0.4 %, close enough``, or ``greedy: `` and the
    reason.  `seconds` are of processor time, for the extraction itself.

    `candidates` counts the choices of the problem, `kernels` the distinct structures of its cuts,
    and `dropped` the cuts beyond a bound of the enumeration.  `chosen` are
    the numbers of the candidates selected, with which another search of the same problem can begin.
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
    chosen: tuple[int, ...] = ()


def extract(
    view: View,
    library: KernelLibrary,
    *,
    profile: Profile = REFERENCE_PROFILE,
    hints: Hints | None = None,
    prices: Prices | None = None,
    growth_limit: int = GROWTH_LIMIT,
    effort: Effort = DEFAULT,
    known: Extraction | None = None,
    bounds: Bounds | None = None,
) -> Extraction:
    """The cheapest program for the roots of `view`, of kernels that `library` runs.

    The program has exactly one `Choice` for each class that it needs, leaves included.  `hints` are
    sizes of dimension symbols (64 for a symbol without one), or several such with weights;
    `prices` replace those of the cost model;  `growth_limit` is how many bytes larger than its
    operands a constant folded at build time may be.  `effort` says when the search ends; it begins
    with `known`, what an earlier search of the same view found, and loses nothing of that.  Raises
    `ExtractionError` if a root has no program.
    """
    offers = Offers(library, Pricing(profile, hints, prices))
    return extract_from(view, offers, growth_limit, effort=effort, known=known, bounds=bounds)


def extract_from(
    view: View,
    offers: Offers,
    growth_limit: int = GROWTH_LIMIT,
    *,
    effort: Effort = DEFAULT,
    known: Extraction | None = None,
    bounds: Bounds | None = None,
) -> Extraction:
    """What `extract` returns, by `offers`, which the views of a module share."""
    started = time.thread_time()
    catalogue = Catalogue(view.classes, offers)
    bounds = bounds or Bounds()
    table = choice_table(view, catalogue, bounds, growth_limit)
    kernels = multi_output_kernels(view, table, catalogue, bounds)
    items, problem = _problem(view, table, kernels)
    derivable = computable(problem)
    for place, root in enumerate(view.roots):
        if root not in derivable and root not in table.free.choices:
            raise ExtractionError(_no_program(view, table.by_class, derivable, place))
    selection = select(problem, effort=effort, start=frozenset(known.chosen if known else ()))
    certify(problem, selection)
    if known and (selection.cost, -selection.bound) >= (known.cost, -known.bound):
        return known
    chosen = _choices([items[number] for number in selection.chosen], catalogue)
    inputs = (k for choice in chosen for k in choice.inputs)
    free = table.free.choices_for((*inputs, *view.roots))
    return Extraction(
        program=(*free, *chosen),
        cost=selection.cost,
        bound=selection.bound,
        gap=selection.gap,
        status=selection.status,
        bound_source=selection.bound_source,
        seconds=time.thread_time() - started,
        candidates=len(items),
        kernels=catalogue.num_queries,
        dropped=table.dropped,
        chosen=selection.chosen,
    )


_Item: TypeAlias = Choice | MultiOutputKernel | tuple[MultiOutputKernel, ClassId]
"""What a candidate is: a choice, a multi-output kernel, or one output of such a kernel."""


def _problem(
    view: View, table: ChoiceTable, kernels: Sequence[MultiOutputKernel]
) -> tuple[list[_Item], Problem]:
    """The selection problem, and the item that each of its candidates stands for.

    Free values are not in it, nor choices that need the same classes as a cheaper one.  A choice
    that mentions a symbol bound by a match_cast of the view depends on that match_cast.  A binding
    that may fail depends on the one before it: a kernel with several outputs that computes the
    operand of one check does not need the result of a later check.
    """
    free = table.free.choices.keys()
    binders, before = _binders(view, table), _checks_before(view)

    def needed(choice: Choice) -> frozenset[ClassId]:
        inputs = frozenset(choice.inputs).difference(free)
        if isinstance(choice.how, Node) and choice.how.op == OPAQUE:
            inputs |= before.get(choice.outputs[0], frozenset())
        if not binders:
            return inputs
        return inputs | {binders[s] for s in mentioned(choice, view) if s in binders}

    items: list[_Item] = []
    candidates: list[Candidate] = []
    for c, choices in table.by_class.items():
        cheapest: dict[frozenset[ClassId], PricedChoice] = {}
        for priced in sorted(choices, key=lambda priced: priced.cost):
            cheapest.setdefault(needed(priced.choice), priced)
        for inputs, priced in cheapest.items():
            items.append(priced.choice)
            candidates.append(Candidate(c, inputs, priced.cost))
    for group, kernel in enumerate(kernels, max(view.classes, default=0) + 1):
        items.append(kernel)
        candidates.append(Candidate(group, needed(kernel.priced.choice), kernel.priced.cost))
        for c in kernel.parts:
            items.append((kernel, c))
            candidates.append(Candidate(c, frozenset({group}), 0.0))
    roots = tuple(root for root in view.roots if root not in free)
    return items, Problem(tuple(candidates), roots)


def _binders(view: View, table: ChoiceTable) -> dict[str, ClassId]:
    """The class of the match_cast that binds each symbol, of symbols that no input binds."""
    casts = first_casts(view)
    return {
        symbol: c
        for c, choices in table.by_class.items()
        for priced in choices
        if isinstance(how := priced.choice.how, Node) and how.op == OPAQUE
        for symbol, cast in casts.items()
        if cast is view.opaque[how.key]
    }


def _checks_before(view: View) -> dict[ClassId, frozenset[ClassId]]:
    """The check before each opaque root but the first, in the order of the program."""
    numbers = {
        root: min(keys)
        for root in view.roots
        if (keys := [n.key for n in view.classes[root].nodes if n.op == OPAQUE])
    }
    ordered = sorted(numbers, key=numbers.__getitem__)
    return {c: frozenset({previous}) for previous, c in pairwise(ordered)}


def _choices(items: Sequence[_Item], catalogue: Catalogue) -> tuple[Choice, ...]:
    """The choices in order; a multi-output kernel with only those outputs that are selected."""
    outputs: dict[int, set[ClassId]] = {}
    for each in items:
        if isinstance(each, tuple):
            outputs.setdefault(id(each[0]), set()).add(each[1])
    return tuple(
        each.choice(outputs[id(each)], catalogue) if isinstance(each, MultiOutputKernel) else each
        for each in items
        if not isinstance(each, tuple)
    )


def _no_program(
    view: View,
    choices: Mapping[ClassId, tuple[PricedChoice, ...]],
    derivable: frozenset[ClassId],
    place: int,
) -> str:
    """Why root number `place` has no program: the class without a choice, or a cycle."""
    root = view.roots[place]
    todo, seen = [root], {root}
    empty: list[ClassId] = []
    while todo:
        c = todo.pop()
        own = choices.get(c, ())
        if not own:
            empty.append(c)
        inputs = {k for priced in own for k in priced.choice.inputs} - derivable - seen
        seen |= inputs
        todo.extend(inputs)
    info = view.classes[root].struct_info
    message = f"root {place}, class {root}, {info} has no finite program"
    if not empty:
        return f"{message}: every way to make it needs itself"
    c = min(empty)
    return f"{message}: nothing makes class {c}, {view.classes[c].struct_info}"
