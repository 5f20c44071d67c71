"""Optimize a module: each dataflow block through the e-graph, then constants folded.

    optimize(module)                       # IRModule -> IRModule
    explain(module, rules=["my.egg"])      # the same run, with every reason

A module is never changed; if anything fails, nothing is returned and nothing is half done.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypedDict

from relax_egraph.base.parameters import takes
from relax_egraph.egraph.encoding.narrowing import DTYPES, Narrowing
from relax_egraph.egraph.engine import (
    Budget,
    RuleBook,
    Schedule,
    check_schedule,
    default_schedule,
    saturate,
)
from relax_egraph.egraph.readback.decode import BROADCAST
from relax_egraph.egraph.saturation.in_process import Saturating
from relax_egraph.errors import IllFormed
from relax_egraph.extract import (
    REFERENCE_PROFILE,
    Hints,
    Prices,
    Profile,
    baseline_cost,
    extract,
)
from relax_egraph.ir import assumptions
from relax_egraph.ir.assumptions import Assumptions, assuming
from relax_egraph.ir.collection import no_collection
from relax_egraph.ir.demands import demands_of
from relax_egraph.ir.depth import deep
from relax_egraph.ir.expr import Call, Expr, Function
from relax_egraph.ir.module import MODULE, BaseFunc, IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.tolerance import tolerance_of, with_tolerance
from relax_egraph.ir.walk import constants_of, post_order_visit
from relax_egraph.lower.library import Library
from relax_egraph.optimize.cache import PlanCache
from relax_egraph.optimize.explanation import Explanation as Explanation
from relax_egraph.optimize.explanation import PlacedRegion, PlanReport, RegionReport, StoredWeights
from relax_egraph.optimize.merging import merged
from relax_egraph.optimize.options import OPTIONS, check_symbols
from relax_egraph.optimize.planner import Plan, Planner
from relax_egraph.optimize.sizes import Sizing
from relax_egraph.optimize.variants import Case, Part, Variants, cases, parts_of
from relax_egraph.passes import (
    PassContext,
    Sequential,
    channels_last,
    eliminate_common_subexpr,
    fold_constant,
    fold_isnan,
    fold_shapes,
    remove_all_unused,
    share_constants,
)
from relax_egraph.passes.analyses.upper_bounds import upper_bounds
from relax_egraph.passes.check_assumptions import bound_symbols, check_assumptions
from relax_egraph.passes.check_claims import check_claims_assuming
from relax_egraph.passes.fold_constant import GROWTH_LIMIT
from relax_egraph.rules import RULES, Given, Rules, read

PREPARE = Sequential(
    (fold_shapes, fold_isnan, eliminate_common_subexpr, remove_all_unused, channels_last),
    name="prepare",
)
"""Shapes that are computed become known, as is what cannot be NaN, regions have what the others
need of them once, and images have their channels last.  What is declared is checked before.
"""

CLEAN_UP = Sequential(
    (eliminate_common_subexpr, fold_constant, share_constants, remove_all_unused), name="clean-up"
)
"""Constants are folded; of those computed in several regions, or functions, there is one."""


class How(TypedDict, total=False):
    """The keywords of `optimize`, as those take them who pass them on."""

    without: Sequence[str]
    fast_math: bool
    tolerance: float | None
    assume: Sequence[str]
    hints: Hints | None
    variants: Variants | None
    profile: Profile | None
    prices: Prices | None
    budget: Budget | None
    schedule: Schedule | None
    isolate: bool | None
    time_limit: float


@takes(module=MODULE, rules=RULES, **OPTIONS)
def optimize(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    without: Sequence[str] = (),
    fast_math: bool = False,
    tolerance: float | None = None,
    assume: Sequence[str] = (),
    hints: Hints | None = None,
    variants: Variants | None = None,
    profile: Profile | None = None,
    prices: Prices | None = None,
    budget: Budget | None = None,
    schedule: Schedule | None = None,
    isolate: bool | None = None,
    time_limit: float = 10.0,
) -> IRModule:
    """Return the best program that the rules prove equal to `module`, by the cost model.

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
    the result is right where they hold, and checks that they do.  `hints` say at which sizes of
    symbols programs are compared.  A symbol without one has the geometric mean of the sizes that
    it may have: 64 if nothing is known of it.  Reports say which sizes were so assumed.

    `variants` are ranges of sizes, ``{"s": [(1, 1), (2, 64), (65, None)]}``: a function with the
    symbol gets a program for each, and chooses by the sizes it is called with; ranges of one
    program are one.  Programs are compared at hints within the range, or else at its geometric
    mean; sizes in no range have the program for the hints.

    `profile` is the machine that programs are compared on, by default `REFERENCE_PROFILE`, and
    `prices` are what takes the place of the model's prices there.

    Each region is saturated by `schedule` within `budget`, with `isolate` in a process of its
    own (by default if there are `rules`), and the solver has `time_limit` seconds; reaching a
    limit loses no program.

    What was planned before is read from the folder that ``RELAX_EGRAPH_CACHE`` names, or the
    system's for caches; ``off`` there keeps nothing.  Reports then are those of the first time.

    Raises `RuleError` for rules that do not read, `SaturationError` for a rule that is found
    unsound, `AssumptionError` for conditions that do not read, contradict each other or name no
    symbol, ``TypeError`` or ``ValueError`` for an option that is not as said here, or that names
    nothing.
    """
    return explain(
        module,
        rules,
        without=without,
        fast_math=fast_math,
        tolerance=tolerance,
        assume=assume,
        hints=hints,
        variants=variants,
        profile=profile,
        prices=prices,
        budget=budget,
        schedule=schedule,
        isolate=isolate,
        time_limit=time_limit,
    ).module


@takes(module=MODULE, rules=RULES, **OPTIONS)
@deep(IllFormed, "the module is nested too deeply")
@no_collection()
def explain(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    without: Sequence[str] = (),
    fast_math: bool = False,
    tolerance: float | None = None,
    assume: Sequence[str] = (),
    hints: Hints | None = None,
    variants: Variants | None = None,
    profile: Profile | None = None,
    prices: Prices | None = None,
    budget: Budget | None = None,
    schedule: Schedule | None = None,
    isolate: bool | None = None,
    time_limit: float = 10.0,
) -> Explanation:
    """Optimize as `optimize` does, and return the module with the reasons."""
    check_symbols(module, {"assume": assume, "hints": hints, "variants": variants})
    known = assumptions.parse(assume)
    profile = profile or REFERENCE_PROFILE
    prepared = prepare(module, tolerance, known)
    bounded = _is_bounded(prepared)
    functions = {n: f for n, f in prepared.relax_functions() if not f.attrs.get("primitive")}
    symbols = {name: bound_symbols(function) for name, function in functions.items()}
    parts = parts_of(variants or {}, frozenset[str]().union(*symbols.values()))
    narrowing = Narrowing()
    library, called, given = Library(), operators_in(prepared), read(rules)
    growth_limit = PassContext.current().option(GROWTH_LIMIT.key)

    @cache
    def book() -> RuleBook:
        return book_for(prepared, given, without, fast_math)

    @cache
    def phases() -> Schedule:
        return default_schedule(book()) if schedule is None else check_schedule(schedule, book())

    if rules or without or schedule:
        phases()  # what is wrong with them is said, whatever is known of the regions
    planner = Planner(
        prepared,
        schedule=phases,
        saturating=lambda view, some: saturate(
            view, book(), budget, phases() if some is None else some, isolate
        ),
        repeated=lambda view, some, report: Saturating(
            view,
            book,
            budget or Budget(),
            phases if some is None else lambda: some,
            report,
            assumptions.active(),
        ),
        extracting=lambda view, at: extract(
            view,
            library,
            profile=profile,
            hints=at,
            prices=prices,
            growth_limit=growth_limit,
            time_limit=time_limit,
        ),
        costing=lambda view, at: baseline_cost(
            view, library, profile=profile, hints=at, prices=prices
        ),
        narrowing=narrowing,
        cache=PlanCache(
            (given, without, fast_math, bounded, called, budget, schedule),
            (library, profile, prices, growth_limit, time_limit),
        ),
    )
    plans: dict[str, dict[Case, Plan]] = {}
    for name, function in functions.items():
        about, bounds = known.about(symbols[name]), upper_bounds(name, function)
        with assuming(about):
            plans[name] = {
                case: planner.plan(name, function, Sizing(hints or {}, case, about, bounds))
                for case in cases(parts, symbols[name])
            }
    best, callees = _assembled(prepared, planner.fused(), plans)
    placed = _placed(best, plans)
    best = CLEAN_UP(best)
    checked = check_assumptions(known)(best).functions  # callees are called by what has checked
    both = {name: f if name in callees else checked[name] for name, f in best.functions.items()}
    weights = _stored(best, prepared, narrowing) if bounded else ()
    return Explanation(IRModule(both), _reports(plans, parts), weights, placed, demands_of(module))


def prepare(
    module: IRModule, tolerance: float | None = None, known: Assumptions | None = None
) -> IRModule:
    """What is planned of `module`: prepared, its functions with the `tolerance` that is asked.

    What is declared and does not follow from what is `known` is checked in it.  Raises `IllTyped`
    for an operator whose operands do not fit together where the assumptions hold.
    """
    checked = check_claims_assuming(known or Assumptions())(module)
    return _allowed(PREPARE(checked), tolerance)


def book_for(
    prepared: IRModule, rules: Rules, without: Sequence[str] = (), fast_math: bool = False
) -> RuleBook:
    """The rules that blocks of a `prepared` module are saturated with."""
    every = RuleBook.default([rules], without, fast_math, bounded=_is_bounded(prepared))
    return every.for_operators(operators_in(prepared))


def _is_bounded(prepared: IRModule) -> bool:
    return any(tolerance_of(name, f.attrs) for name, f in prepared.relax_functions())


def _allowed(module: IRModule, tolerance: float | None) -> IRModule:
    """`module` with functions that say `tolerance`, or what they do."""
    if tolerance is None:
        return module

    def said(function: BaseFunc) -> BaseFunc:
        if isinstance(function, Function) and not function.attrs.get("primitive"):
            return with_tolerance(function, tolerance)
        return function

    return IRModule({name: said(f) for name, f in module.functions.items()})


def _assembled(
    module: IRModule, fused: Mapping[str, BaseFunc], plans: Mapping[str, Mapping[Case, Plan]]
) -> tuple[IRModule, set[str]]:
    """`module` with its functions as planned, each behind what it chooses of; the names of that."""
    functions: dict[str, BaseFunc] = {**fused}
    callees: set[str] = set()
    for name, function in module.functions.items():
        if name not in plans:
            functions[name] = function
            continue
        of = {case: plan.function for case, plan in plans[name].items()}
        found = merged(name, of, {*module.functions, *functions})
        functions.update(found)
        callees |= found.keys() - {name}
    return IRModule(functions), callees


def _placed(best: IRModule, plans: Mapping[str, Mapping[Case, Plan]]) -> tuple[PlacedRegion, ...]:
    """The regions of the plans that `best` has; of equal ones it has the first."""
    planned = {id(plan.function.body): plan for of in plans.values() for plan in of.values()}
    return tuple(
        replace(placed, function=name)
        for name, function in best.relax_functions()
        if id(function.body) in planned
        for placed in planned[id(function.body)].placed
    )


def _reports(
    plans: Mapping[str, Mapping[Case, Plan]], parts: Mapping[str, tuple[Part, ...]]
) -> tuple[PlanReport, ...]:
    """What happened to the regions of the module, for each combination of `parts`."""
    known: dict[tuple[int, int], RegionReport] = {}
    reports: list[PlanReport] = []
    for case in cases(parts, parts):
        found = [
            report
            for of in plans.values()
            for own, plan in of.items()
            if set(own).issubset(case)
            for report in plan.regions
        ]
        uses = Counter(map(id, found))
        for report in found:
            count = uses[id(report)]
            known.setdefault((id(report), count), replace(report, uses=count))
        regions = tuple(known[identity, count] for identity, count in uses.items())
        reports.append(PlanReport(", ".join(map(str, case)), regions))
    return tuple(reports)


def _stored(best: IRModule, source: IRModule, narrowing: Narrowing) -> tuple[StoredWeights, ...]:
    """What weights `best` stores in fewer bits than `source` does."""
    old, now = ([f for _, f in m.relax_functions()] for m in (source, best))
    before = {id(c.data) for c in constants_of(*old)}
    new = [c.data for c in constants_of(*now) if id(c.data) not in before]
    found: list[StoredWeights] = []
    for dtype in DTYPES:
        sizes = [array.nbytes for array in new if array.dtype.name == dtype]
        if sizes:
            found.append(StoredWeights(dtype, len(sizes), sum(sizes), narrowing.worst(dtype)))
    return tuple(found)


def operators_in(module: IRModule) -> frozenset[str]:
    """The operators that functions of `module` call, and the one that encoding adds."""
    found = {BROADCAST}

    def visit(expr: Expr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            found.add(expr.op.name)

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    return frozenset(found)
