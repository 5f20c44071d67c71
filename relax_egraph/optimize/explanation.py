"""The report of an optimization: each region, its e-graph, its program, its cost."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from io import StringIO
from statistics import fmean
from typing import TYPE_CHECKING, Any

from relax_egraph.base import notebook
from relax_egraph.egraph.engine import Report
from relax_egraph.egraph.readback.node_text import node_text, view_lines
from relax_egraph.egraph.saturation.in_process import Saturating
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.extract import (
    REFERENCE_PROFILE,
    Extraction,
    PricedView,
    Prices,
    Pricing,
    Profile,
    Sizes,
    serialize,
)
from relax_egraph.ir.demands import Demand
from relax_egraph.ir.expr import Expr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.optimize.prepare import Step
from relax_egraph.optimize.sizes import Scenario, assumed_in, at_assumed

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class RegionReport:
    """The report on one region of a dataflow block, and on all `uses` regions that are equal to it.

    The first of them is in `function`.  `cost_before` is the cost of its operators one by one;
    costs and counts of matches are of one region.  `source` is its view before saturation, `became`
    maps its classes to the classes of `view`, and `runs` are the saturations in between.  Costs are
    means over the sizes of `priced_at`, by their weights.
    """

    function: str
    saturation: Report
    extraction: Extraction
    cost_before: float
    view: View
    source: View
    became: Mapping[ClassId, ClassId]
    runs: tuple[Saturating, ...]
    priced_at: tuple[Scenario, ...]
    uses: int = 1

    @property
    def hints(self) -> list[tuple[float, Sizes]]:
        """The sizes of `priced_at`, with their weights."""
        return [(scenario.weight, scenario.sizes) for scenario in self.priced_at]

    def egraph_lines(self, only: Container[ClassId] | None = None) -> Iterator[str]:
        """The roots of the e-graph, then its classes or those in `only`, one a line."""
        yield f"; {self.function}: roots {' '.join(f'${root}' for root in self.view.roots)}"
        yield from view_lines(self.view, only)

    @property
    def stop(self) -> str:
        """Why each phase of saturation ended, equal reasons once, and failures."""
        reasons = {p.stop for p in self.saturation.phases}
        if len(reasons) == 1 and not self.saturation.bans:
            return "; ".join((str(reasons.pop()), *self.saturation.notes))
        return "; ".join((*map(str, self.saturation.phases), *self.saturation.notes))


@dataclass(frozen=True, slots=True)
class PlacedRegion:
    """A region at its place: in `function`, a plan of the function `source` of the module.

    `origin` maps variables of the source to classes of `region.source`, and `values` classes of
    `region.view` to expressions of the plan, before clean-up.
    """

    function: str
    source: str
    region: RegionReport
    origin: Mapping[Var, ClassId]
    values: Mapping[ClassId, Expr]


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """The weights of products that are stored as `dtype`: how many, and their bytes.

    The error of each column of a product is at most `error` times the norms of a row and a column:
    it is measured on the worst weight.
    """

    dtype: str
    count: int
    nbytes: int
    error: float

    def __str__(self) -> str:
        return f"{self.count}, {self.nbytes / 1e6:.1f} MB, off by at most {self.error:.2%}"


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The costs in seconds of the program for a range of sizes: ``2 <= s <= 64``; "" are all sizes.

    Equal regions are one of `regions`; totals count each of them.
    """

    sizes: str
    regions: tuple[RegionReport, ...]

    @property
    def assumed(self) -> Mapping[str, int]:
        """The assumed sizes of symbols, which have no hint, by symbol."""
        return assumed_in(s for region in self.regions for s in region.priced_at)

    @property
    def cost_before(self) -> float:
        """The cost of the original blocks, each operator a kernel."""
        return sum(r.cost_before * r.uses for r in self.regions)

    @property
    def cost(self) -> float:
        """The cost of the chosen program."""
        return sum(r.extraction.cost * r.uses for r in self.regions)

    @property
    def bound(self) -> float:
        """The proven lower bound of the cost of any program in the e-graphs."""
        return sum(r.extraction.bound * r.uses for r in self.regions)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The optimized module and its report: a plan for each combination of variants.

    Costs are in seconds, by the cost model; of several plans they are the mean.  `weights` are
    stored in fewer bits, within the tolerance.  `placed` are all regions, at their places in the
    functions of the module.  `demands` are conditions on sizes that the program checks, because
    its operators refuse other sizes.  `steps` changed the module before it was planned.
    `opaque` are the loop functions that are called as they are, each with the reason.
    """

    module: IRModule
    plans: tuple[PlanReport, ...]
    weights: tuple[StoredWeights, ...] = ()
    placed: tuple[PlacedRegion, ...] = ()
    demands: tuple[Demand, ...] = ()
    steps: tuple[Step, ...] = ()
    opaque: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def regions(self) -> tuple[RegionReport, ...]:
        """The regions without repetition, one for each set of sizes at which it was priced."""
        return tuple({id(r): r for plan in self.plans for r in plan.regions}.values())

    @property
    def egraphs(self) -> tuple[RegionReport, ...]:
        """One region for each e-graph: the e-graphs of equal regions are one."""
        return tuple({id(r.view): r for r in self.regions}.values())

    @property
    def rules(self) -> Mapping[str, int]:
        """The number of matches of each rule that matched, the most frequent rule first."""
        total = Counter[str]()
        for region in self.plans[0].regions:  # other plans have the same e-graphs
            total.update({r: n * region.uses for r, n in region.saturation.matches.items()})
        return {name: count for name, count in total.most_common() if count}

    @property
    def cost_before(self) -> float:
        """The cost of the original blocks, each operator a kernel."""
        return fmean(plan.cost_before for plan in self.plans)

    @property
    def cost(self) -> float:
        """The cost of the chosen program."""
        return fmean(plan.cost for plan in self.plans)

    @property
    def bound(self) -> float:
        """The proven lower bound of the cost of any program in the e-graphs."""
        return fmean(plan.bound for plan in self.plans)

    @property
    def assumed(self) -> Mapping[str, tuple[int, ...]]:
        """The assumed sizes of symbols, which have no hint: one size for each plan."""
        sizes: dict[str, dict[int, None]] = {}
        for plan in self.plans:
            for name, size in plan.assumed.items():
                sizes.setdefault(name, {})[size] = None
        return {name: tuple(assumed) for name, assumed in sizes.items()}

    @property
    def gap(self) -> float:
        """The most that `cost` may exceed the optimum, as a share of `cost`."""
        return (self.cost - self.bound) / self.cost if self.cost else 0.0

    def table(self) -> "Table":
        """A table for rich: rules that matched, stop reasons, costs."""
        from rich.table import Table  # 30 ms: not before it is needed

        table = Table("rule", "matches", title="what fired", title_justify="left")
        for name, count in self.rules.items():
            table.add_row(name, str(count))
        table.add_section()
        for step in self.steps:
            table.add_row(f"before planning: {step.name}", ", ".join(step.functions))
        for name, reason in self.opaque.items():
            table.add_row(f"{name} stays as it is", reason)
        for region in self.plans[0].regions:
            where = f"{region.function}, {region.uses} times" * (region.uses > 1)
            table.add_row(f"{where or region.function}: saturation", region.stop)
            alike = (r for r in self.regions if r.view is region.view)
            statuses = dict.fromkeys(r.extraction.status for r in alike)
            table.add_row(f"{where or region.function}: extraction", "; ".join(statuses))
        table.add_section()
        for plan in self.plans:
            where = f", {plan.sizes}" * bool(plan.sizes)
            cost = f"{_us(plan.cost_before)} → {_us(plan.cost)}{at_assumed(plan.assumed)}"
            table.add_row(f"cost before → after{where}", cost)
        table.add_row("proven bound, gap", f"{_us(self.bound)}, {self.gap:.2%}")
        for stored in self.weights:
            table.add_row(f"weights in {stored.dtype}", str(stored))
        for demand in self.demands:
            table.add_row("assumed from the program", str(demand))
        return table

    def __repr__(self) -> str:
        cost = f"{_us(self.cost_before)} → {_us(self.cost)}{at_assumed(self.assumed)}"
        return f"<{type(self).__name__}: {cost}, {len(self.rules)} rules matched>"

    def __str__(self) -> str:
        return plain_text(self.table())

    def _repr_html_(self) -> str:
        return notebook.table(self.table())

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, costs in seconds."""
        return {
            "rules": dict(self.rules),
            "stop": [r.stop for r in self.regions],
            "status": [r.extraction.status for r in self.regions],
            "uses": [r.uses for r in self.regions],
            "plans": [
                {
                    "sizes": p.sizes,
                    "assumed": dict(p.assumed),
                    "cost_before": p.cost_before,
                    "cost": p.cost,
                    "bound": p.bound,
                }
                for p in self.plans
            ],
            "assumed": {name: list(sizes) for name, sizes in self.assumed.items()},
            "cost_before": self.cost_before,
            "cost": self.cost,
            "bound": self.bound,
            "gap": self.gap,
            "weights": [asdict(stored) for stored in self.weights],
            "demands": [asdict(demand) for demand in self.demands],
            "steps": [asdict(step) for step in self.steps],
            "opaque": dict(self.opaque),
        }

    def egraph_text(self) -> str:
        """The saturated e-graphs, one class a line: its name, its type, then its nodes."""
        regions = self.plans[0].regions  # other plans have the same e-graphs
        return "\n".join(line for region in regions for line in region.egraph_lines())

    def egraph_document(
        self, profile: Profile = REFERENCE_PROFILE, prices: Prices | None = None
    ) -> dict[str, Any]:
        """The saturated e-graphs in the JSON form of egraph-serialize, costs in seconds.

        Of several plans these are the e-graphs of the first, at its sizes.
        """
        graphs = (
            PricedView(region.view, Pricing(profile, region.hints, prices), region.uses)
            for region in self.plans[0].regions
        )
        return serialize(graphs, partial(node_text, whole=False))


def plain_text(renderable: "RenderableType") -> str:
    """The text of a rich object without a terminal, in 120 columns."""
    from rich.console import Console  # 30 ms: not before it is needed

    console = Console(file=StringIO(), width=120, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"
