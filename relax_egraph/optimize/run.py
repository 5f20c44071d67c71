"""Optimize a module: each dataflow block through the e-graph, then constants folded.

    optimize(module)                       # IRModule -> IRModule
    run(module, Session())                 # the same, with a report of each region

A module is never changed; if anything fails, nothing is returned and nothing is half done.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace

from relax_egraph.base.log import phase
from relax_egraph.egraph.encoding.narrowing import Narrowing
from relax_egraph.errors import IllFormed
from relax_egraph.ir import assumptions
from relax_egraph.ir.assumptions import assuming
from relax_egraph.ir.called import operators_for
from relax_egraph.ir.collection import no_collection
from relax_egraph.ir.demands import demands_of
from relax_egraph.ir.depth import deep
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.optimize.explanation import Explanation, PlacedRegion
from relax_egraph.optimize.merging import merged
from relax_egraph.optimize.planner import Plan, Planner
from relax_egraph.optimize.prepare import has_tolerance, prepare
from relax_egraph.optimize.regions import RegionOptimizer
from relax_egraph.optimize.reports import plan_reports, stored_weights
from relax_egraph.optimize.session import Session, check_symbols, with_options_of
from relax_egraph.optimize.sizes import Sizing
from relax_egraph.optimize.variants import Case, cases, parts_of
from relax_egraph.passes import (
    Sequential,
    eliminate_common_subexpr,
    fold_constant,
    remove_all_unused,
    share_constants,
)
from relax_egraph.passes.analyses.upper_bounds import upper_bounds
from relax_egraph.passes.check_assumptions import (
    assumed_behind,
    bound_symbols,
    check_assumptions,
)
from relax_egraph.passes.fold_constant import store_broadcasts

LOG = logging.getLogger(__name__)

CLEAN_UP = Sequential(
    (
        eliminate_common_subexpr,
        fold_constant,
        store_broadcasts,
        share_constants,
        remove_all_unused,
    ),
    name="clean-up",
)
"""Fold constants, and keep one of equal constants that several regions or functions have."""


@with_options_of(Session)
def optimize(module: IRModule, session: Session) -> IRModule:
    """Return the best program that the rules prove equal to `module`, by the cost model.

    Before, parameters get the shapes and dtypes that their uses require, loop functions become the
    operators that compute the same, small private functions are inlined, and bindings without
    effects are gathered into dataflow blocks: the passes that `Explanation.steps` names, unless a
    `PassContext` disables them.

    `rules` are the user's, beside the rule book: files, texts, or what ``rules.load`` read.
    `without` names families or rules to leave out; `fast_math` lets in those that are equations
    of real numbers only.

    Within `tolerance`, constant weights of products are stored as bfloat16, or as int8 with a
    scale for each column, where that is faster.  It bounds by what part of ``|x| |w|``, the norms
    of a row and a column, a result of ``x @ w`` may be off: 0.004 admits bfloat16, 0.02 int8 for
    most weights.  From 3e-5 on, a part of the mean magnitude of the results, convolutions may take
    fewer products.  It becomes an attribute of the functions, which `build` obeys; by default it
    is what they say of themselves, ``R.func_attr({"tolerance": 0.02})``, else 0: nothing is lost.

    `assume` are conditions on symbols of parameters, ``"n >= 1"`` or ``"s % 8 == 0"``:
    the result is right where they hold, and checks that they do.  Bounds of symbols that a function
    itself checks first, ``R.match_cast(R.shape([max(512, n)]), R.Shape((512,)), refusal=...)``, are
    known, as well.  `hints` say at which sizes of
    symbols programs are compared.  A symbol without one has the geometric mean of the sizes that
    it may have: 64 if nothing is known of it.  Reports say which sizes were so assumed.

    `variants` are ranges of sizes, ``{"s": [(1, 1), (2, 64), (65, None)]}``: a function with the
    symbol gets a program for each, and chooses by the sizes it is called with; ranges of one
    program are one.  Programs are compared at hints within the range, or else at its geometric
    mean; sizes in no range have the program for the hints.

    `profile` is the machine that programs are compared on, by default `REFERENCE_PROFILE`, and
    `prices` are what takes the place of the model's prices there.

    Each region is saturated by `schedule` within `budget`, with `isolate` in a process of its
    own (by default if there are `rules`).  Its best program is searched for until it is proven to
    cost at most 1 % too much, or for 2 seconds; with a `time_limit`, until it is proven optimal, or
    for so many seconds.  Reaching a limit loses no program, and reports say how good it is.

    What was planned before is read from the folder that ``RELAX_EGRAPH_CACHE`` names, or the
    system's for caches; ``off`` there keeps nothing.  Reports then are those of the first time.  A
    search that ended at a limit is continued by a call with a longer `time_limit`.

    Raises `RuleError` for rules that do not read, `SaturationError` for a rule that proves
    unsound, `AssumptionError` for conditions that do not read, contradict each other or name no
    symbol, ``TypeError`` or ``ValueError`` for an option that is malformed, or that names
    nothing.
    """
    return run(module, session).module


@deep(IllFormed, "the module is nested too deeply")
@no_collection()
def run(module: IRModule, session: Session) -> Explanation:
    """Optimize as `optimize` does, and return the module with a report of each region."""
    with operators_for(module).in_force():
        return _run(module, session)


def _run(module: IRModule, session: Session) -> Explanation:
    check_symbols(module, session)
    known = assumptions.parse(session.assume)
    with phase(LOG, "prepare"):
        preparation = prepare(module, session, known)
    for step in preparation.steps:
        LOG.debug("%s changed %s", step.name, ", ".join(step.functions))
    prepared = preparation.module
    functions = {n: f for n, f in prepared.relax_functions() if not f.attrs.get("primitive")}
    symbols = {name: bound_symbols(function) for name, function in functions.items()}
    parts = parts_of(session.variants or {}, frozenset[str]().union(*symbols.values()))
    narrowing = Narrowing()
    planner = Planner(prepared, RegionOptimizer(prepared, session), narrowing)
    plans: dict[str, dict[Case, Plan]] = {}
    for name, function in functions.items():
        about, bounds = assumed_behind(function, known), upper_bounds(name, function)
        with assuming(about), phase(LOG, "plan %s", name):
            plans[name] = {
                case: planner.plan(name, function, Sizing(session.hints or {}, case, about, bounds))
                for case in cases(parts, symbols[name])
            }
    best, callees = _assembled(prepared, planner.fused(), plans)
    placed = _placed(best, plans)
    with phase(LOG, "clean up"):
        best = CLEAN_UP(best)
    checked = check_assumptions(known)(best).functions  # a callee's caller has checked them
    both = {name: f if name in callees else checked[name] for name, f in best.functions.items()}
    weights = stored_weights(best, prepared, narrowing) if has_tolerance(prepared) else ()
    reports = plan_reports(plans, parts)
    return Explanation(
        replace(best, functions=both),
        reports,
        weights,
        placed,
        demands_of(module),
        preparation.steps,
        preparation.opaque,
    )


def _assembled(
    module: IRModule, fused: Mapping[str, BaseFunc], plans: Mapping[str, Mapping[Case, Plan]]
) -> tuple[IRModule, set[str]]:
    """`module` with its functions as planned, and the names of those that an entry chooses from."""
    functions: dict[str, BaseFunc] = {**fused}
    callees: set[str] = set()
    for name, function in module.functions.items():
        if name not in plans:
            functions[name] = function
            continue
        by_case = {case: plan.function for case, plan in plans[name].items()}
        entry = merged(name, by_case, {*module.functions, *functions})
        functions.update(entry)
        callees |= entry.keys() - {name}
    return replace(module, functions=functions), callees


def _placed(best: IRModule, plans: Mapping[str, Mapping[Case, Plan]]) -> tuple[PlacedRegion, ...]:
    """The regions of the plans that `best` has; of equal plans it has the first."""
    plan_of = {id(plan.function.body): plan for of in plans.values() for plan in of.values()}
    return tuple(
        replace(placed, function=name)
        for name, function in best.relax_functions()
        if id(function.body) in plan_of
        for placed in plan_of[id(function.body)].placed
    )
