"""The best program for each function: its dataflow blocks through the e-graph, region by region.

Equal regions are saturated once, and extracted once for each set of sizes: the sizes decide the
cost, and so the program.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from relax_egraph.egraph.encoding.crossing import with_channels_last
from relax_egraph.egraph.encoding.encode import Encoded, encode
from relax_egraph.egraph.encoding.magnitudes import ASKING, Magnitudes
from relax_egraph.egraph.encoding.narrowing import Narrowing
from relax_egraph.egraph.encoding.places import Placed, placed, within
from relax_egraph.egraph.encoding.regions import Region, binders_of, regions_of
from relax_egraph.egraph.encoding.signature import signature
from relax_egraph.egraph.engine import Saturated, Schedule, before_weights, untouched
from relax_egraph.egraph.readback.decode import decode
from relax_egraph.egraph.readback.fused import FusedFunctions
from relax_egraph.egraph.readback.instance import instance
from relax_egraph.egraph.readback.source_order import source_first
from relax_egraph.egraph.saturation.in_process import Saturating
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.ir import assumptions
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import (
    Binding,
    Block,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    If,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutation import written_variables
from relax_egraph.ir.occurrences import shape_variables_of, symbols_in
from relax_egraph.ir.refusals import Refusals
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, symbols_of
from relax_egraph.ir.tolerance import tolerance_of
from relax_egraph.ir.walk import free_vars
from relax_egraph.optimize.explanation import PlacedRegion, RegionReport
from relax_egraph.optimize.prepare import operators_in
from relax_egraph.optimize.regions import RegionOptimizer
from relax_egraph.optimize.sizes import Sizing


@dataclass(frozen=True, slots=True)
class Plan:
    """The best program of a function at some sizes, with the reports of its regions.

    `placed` are the regions at their places; a block that is left unchanged has none.
    """

    function: Function
    regions: tuple[RegionReport, ...]
    placed: tuple[PlacedRegion, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """A set of equal regions, the first of them in `function`; `reports` are by sizes.

    `region` is the key of the set, and `runs` are its saturations.  `written` is the first region
    as the block has it, and `source` the form that all share.
    """

    function: str
    region: Hashable
    written: View
    source: Placed
    saturated: Saturated
    runs: tuple[Saturating, ...]
    symbols: frozenset[str]
    reports: dict[Hashable, RegionReport] = field(default_factory=dict[Hashable, RegionReport])


@dataclass(frozen=True, slots=True)
class _Part:
    """A region of a block, encoded, and its kind, whose symbols of places have the values `at`."""

    region: Region
    source: Encoded
    kind: _Kind
    at: Mapping[str, int]


class Planner:
    """Plans the functions of one module; fused functions are shared by all plans.

    What constant weights lose in fewer bits, where a function has a tolerance, `narrowing` measures
    before the first phase of the schedule that stores them so.  If an operator of the module asks
    for magnitudes, a region gets those of the values that it reads.
    """

    def __init__(self, module: IRModule, regions: RegionOptimizer, narrowing: Narrowing) -> None:
        self._module = module
        self._refusals = Refusals(module, regions.stated)
        self._regions = regions
        self._narrowing = narrowing
        self._magnitudes = None if ASKING.isdisjoint(operators_in(module)) else Magnitudes()
        self._builder = BlockBuilder(module)
        self._fused = FusedFunctions(self._builder.add_func)
        self._saturated: dict[Hashable, Saturated] = {}
        self._kinds: dict[Hashable, _Kind] = {}
        self._parts: dict[tuple[str, DataflowBlock], tuple[_Part, ...]] = {}

    def _symbols(self) -> frozenset[str]:
        """The symbols of all functions of the module."""
        functions = (function for _, function in self._module.relax_functions())
        return frozenset[str]().union(*map(symbols_in, functions))

    def fused(self) -> dict[str, BaseFunc]:
        """The fused functions that the plans call."""
        functions = self._builder.get().functions
        return {name: f for name, f in functions.items() if name not in self._module}

    def plan(self, name: str, function: Function, sizing: Sizing) -> Plan:
        """`function` with the best program of each dataflow block at the sizes of `sizing`."""
        written = written_variables(function, self._module)
        planned = _FunctionPlan(self, name, sizing, self._fused, written)
        body = planned.sequence(function.body)
        return Plan(replace(function, body=body), tuple(planned.reports), tuple(planned.placed))

    def parts(self, name: str, block: DataflowBlock) -> tuple[_Part, ...]:
        """The regions of a block of function `name`, each with its kind."""
        if (name, block) not in self._parts:
            refusing = frozenset(self._refusals.among(block.bindings))
            kept = _kept(block)
            cut = regions_of(block.bindings, kept, refusing=refusing)
            regions = with_channels_last(cut, kept)
            sources = [encode(r.bindings, r.outputs, refusing) for r in regions]
            forms = placed([source.view for source in sources], self._symbols)
            each = zip(regions, sources, forms, strict=True)
            self._parts[name, block] = tuple(self._part(name, *part) for part in each)
        return self._parts[name, block]

    def _part(self, name: str, region: Region, source: Encoded, form: Placed) -> _Part:
        """A `region` of function `name`; regions that compute what it reads come before it."""
        if self._magnitudes is None:
            return _Part(region, source, self._kind(name, source.view, form), form.at)
        form = replace(form, view=self._magnitudes.added_to(form.view))
        kind = self._kind(name, source.view, form)
        saturated = kind.saturated
        now = {var: saturated.became[source.origin[var]] for var in region.outputs}
        self._magnitudes.learn(now, saturated.view.classes)
        return _Part(region, source, kind, form.at)

    def report(self, kind: _Kind, sizing: Sizing) -> RegionReport:
        """The report of a `kind` at the sizes of the symbols in it, with its best program."""
        scenarios = sizing.with_values(kind.source.at).scenarios(kind.symbols)
        sizes = tuple((s.weight, tuple(s.sizes.items()), s.assumed) for s in scenarios)
        if sizes not in kind.reports:
            hints = [(s.weight, s.sizes) for s in scenarios]
            with within(kind.source):
                priced = self._regions.best(kind.region, kind.written, kind.saturated, hints)
            kind.reports[sizes] = RegionReport(
                function=kind.function,
                saturation=kind.saturated.report,
                extraction=priced.extraction,
                cost_before=priced.cost_before,
                view=kind.saturated.view,
                source=kind.source.view,
                became=kind.saturated.became,
                runs=kind.runs,
                priced_at=scenarios,
            )
        return kind.reports[sizes]

    def _kind(self, name: str, written: View, source: Placed) -> _Kind:
        with within(source):
            return self._kind_assuming(name, written, source)

    def _kind_assuming(self, name: str, written: View, source: Placed) -> _Kind:
        tolerance, view = tolerance_of(name, self._module[name].attrs), source.view
        first, rest = before_weights(self._regions.schedule) if tolerance else (None, ())
        key, saturated = self._once(view, first)
        runs = (self._regions.repeatable(view, first, saturated.report),)
        if rest:
            reached = replace(saturated.view, leaves=view.leaves, opaque=view.opaque)
            reached = self._narrowing.of(reached, tolerance)
            more, stored = self._once(reached, rest)
            runs = (*runs, self._regions.repeatable(reached, rest, stored.report))
            key, saturated = (key, more), saturated.then(stored)
        kind = self._kinds.get(key)
        if kind is None:
            view = source_first(saturated.view, source.view, saturated.became)
            saturated = replace(saturated, view=view)
            kind = _Kind(name, key, written, source, saturated, runs, _symbols_of(view))
            self._kinds[key] = kind
        return kind

    def _once(self, view: View, phases: Schedule | None) -> tuple[Hashable, Saturated]:
        """`view` saturated by `phases`, once for equal views, with the key of these."""
        if phases == ():
            return None, untouched(view)
        key = (signature(view), assumptions.active(), phases)
        saturated = self._saturated.get(key)
        if saturated is None:
            saturated = self._regions.saturated(key, view, phases)
            self._saturated[key] = saturated
        return key, saturated


class _FunctionPlan:
    """The construction of one plan of one function."""

    def __init__(
        self,
        planner: Planner,
        name: str,
        sizing: Sizing,
        fused: FusedFunctions,
        written: frozenset[Var],
    ) -> None:
        self.reports: list[RegionReport] = []
        self.placed: list[PlacedRegion] = []
        self._planner = planner
        self._name = name
        self._sizing = sizing
        self._fused = fused
        self._written = written

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """`seq` with the best program of each dataflow block, in branches too."""
        return replace(seq, blocks=tuple(map(self._block, seq.blocks)))

    def _block(self, block: Block) -> Block:
        if isinstance(block, DataflowBlock):
            return self._dataflow(block)
        bindings = tuple(
            replace(b, value=self._branches(b.value)) if isinstance(b, VarBinding) else b
            for b in block.bindings
        )
        return replace(block, bindings=bindings)

    def _branches(self, value: Expr) -> Expr:
        if not isinstance(value, If):
            return value
        true, false = map(self.sequence, (value.true_branch, value.false_branch))
        return replace(value, true_branch=true, false_branch=false)

    def _dataflow(self, block: DataflowBlock) -> DataflowBlock:
        parts = self._planner.parts(self._name, block)
        leaves = (leaf for part in parts for leaf in part.source.view.leaves)
        names = {leaf.name for leaf in leaves if isinstance(leaf, Var)}
        names |= {v.name for part in parts for v in part.region.outputs}
        binders = binders_of(block.bindings)
        bindings: list[Binding] = []
        placed: list[PlacedRegion] = []
        for part in parts:
            report = self._planner.report(part.kind, self._sizing)
            self.reports.append(report)
            now, source = part.kind.saturated.became, part.source
            named = reversed(list(source.origin.items()))
            values: dict[ClassId, Expr] = {}
            placed.append(PlacedRegion(self._name, self._name, report, source.origin, values))
            view = replace(report.view, leaves=source.view.leaves, opaque=source.view.opaque)
            bindings += decode(
                *instance(view, report.extraction.program, part.at),
                [(v, now[source.origin[v]]) for v in part.region.outputs],
                {now[c]: v.name for v, c in named if c in now},
                self._fused,
                taken=names,
                binders=binders,
                values=values,
            )
        if any(self._written.intersection(_same_tensor(b)) for b in bindings):
            return block  # a tensor of its own would become another's, which is written
        self.placed += placed
        return DataflowBlock(tuple(bindings))


def _same_tensor(binding: Binding) -> tuple[Var, ...]:
    """The variables of a binding that is an alias of a tensor."""
    if isinstance(binding.value, Call):
        return ()
    return (binding.var, *free_vars(binding.value))


def _kept(block: DataflowBlock) -> list[Var]:
    """The outputs of a block, after the shape variables of their struct info."""
    outputs = [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]
    named = frozenset[Var]().union(*(shape_variables_of(v.struct_info) for v in outputs))
    shapes = [b.var for b in block.bindings if b.var in named]
    return list(dict.fromkeys([*shapes, *outputs]))


def _symbols_of(view: View) -> frozenset[str]:
    """The symbols on which the costs of programs of `view` may depend."""
    infos: set[StructInfo] = {eclass.struct_info for eclass in view.classes.values()}
    for eclass in view.classes.values():
        children = (c for node in eclass.nodes for c in node.children)
        infos.update(c for c in children if isinstance(c, ShapeStructInfo))
    return frozenset[str]().union(*map(symbols_of, infos))
