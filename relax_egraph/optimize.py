"""Optimize a module: each dataflow block through the e-graph, then constants folded.

    optimize(module)                       # IRModule -> IRModule
    explain(module, rules=["my.egg"])      # the same run, with every reason

A block is cut into regions, and regions that are alike are optimized once.  A module is never
changed; if anything fails, nothing is returned and nothing is half done.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from relax_egraph.egraph.decode import BROADCAST, decode
from relax_egraph.egraph.encode import Encoded, encode
from relax_egraph.egraph.engine import Budget, RuleBook, Saturated, Schedule, saturate
from relax_egraph.egraph.fused import FusedFunctions
from relax_egraph.egraph.regions import binders_of, regions_of
from relax_egraph.egraph.signature import signature
from relax_egraph.egraph.source_order import source_first
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.errors import IllFormed
from relax_egraph.explanation import Explanation as Explanation
from relax_egraph.explanation import RegionReport
from relax_egraph.extract import cost_of_view, extract
from relax_egraph.ir import assumptions
from relax_egraph.ir.assumptions import assuming
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.depth import deep
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
from relax_egraph.ir.occurrences import shape_variables_of
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import free_vars, post_order_visit
from relax_egraph.ir.written import written_variables
from relax_egraph.lower.library import Library
from relax_egraph.passes import (
    Sequential,
    eliminate_common_subexpr,
    fold_constant,
    fold_shapes,
    remove_all_unused,
)
from relax_egraph.passes.check_assumptions import bound_symbols, check_assumptions
from relax_egraph.rules import Given

PREPARE = Sequential((fold_shapes, eliminate_common_subexpr, remove_all_unused), name="prepare")
"""Shapes that are computed become known, and regions have what the others need of them once."""

CLEAN_UP = Sequential((eliminate_common_subexpr, fold_constant, remove_all_unused), name="clean-up")
"""Constants are folded, of those computed in several regions one."""


def optimize(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    without: Sequence[str] = (),
    fast_math: bool = False,
    assume: Sequence[str] = (),
    hints: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    schedule: Schedule | None = None,
    isolate: bool | None = None,
    time_limit: float = 10.0,
) -> IRModule:
    """Return the best program that the rules prove equal to `module`, by the cost model.

    `rules` are the user's, beside the rule book: files, texts, or what ``rules.load`` read.
    `without` names families or rules to leave out; `fast_math` lets in those that are equations
    of real numbers only.  `assume` are conditions on symbols, ``"n >= 1"`` or ``"s % 8 == 0"``:
    the result is right where they hold, and checks that they do.  `hints` say at which values of
    the symbols programs are compared.

    Each region is saturated by `schedule` within `budget`, with `isolate` in a process of its
    own (by default if there are `rules`), and the solver has `time_limit` seconds; reaching a
    limit loses no program.

    Raises `RuleError` for rules that do not read, `SaturationError` for a rule that is found
    unsound, `AssumptionError` for conditions that do not read or contradict each other.
    """
    return explain(
        module,
        rules,
        without=without,
        fast_math=fast_math,
        assume=assume,
        hints=hints,
        budget=budget,
        schedule=schedule,
        isolate=isolate,
        time_limit=time_limit,
    ).module


@deep(IllFormed, "the module is nested too deeply")
def explain(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    without: Sequence[str] = (),
    fast_math: bool = False,
    assume: Sequence[str] = (),
    hints: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    schedule: Schedule | None = None,
    isolate: bool | None = None,
    time_limit: float = 10.0,
) -> Explanation:
    """Optimize as `optimize` does, and return the module with the reasons."""
    known = assumptions.parse(assume)
    every = RuleBook.default(rules, without, fast_math)
    prepared = PREPARE(module)
    book = every.for_operators(operators_in(prepared))
    saturating = partial(saturate, book=book, budget=budget, schedule=schedule, isolate=isolate)
    run = _Run(prepared, saturating, hints or {}, time_limit)
    for name, function in prepared.relax_functions():
        if not function.attrs.get("primitive"):
            with assuming(known.about(bound_symbols(function))):
                run.functions[name] = run.function(name, function)
    optimized = check_assumptions(known)(CLEAN_UP(run.module()))
    return Explanation(optimized, tuple(run.reports()))


@dataclass(frozen=True, slots=True)
class _Solved:
    """A region, and the class of its chosen program that each class of it became."""

    report: RegionReport
    became: Mapping[ClassId, ClassId]


class _Run:
    """One run over a module: the functions so far, and what became of each kind of region."""

    def __init__(
        self,
        module: IRModule,
        saturating: Callable[[View], Saturated],
        hints: Mapping[str, int],
        time_limit: float,
    ) -> None:
        self.functions: dict[str, BaseFunc] = dict(module.functions)
        self._solved: dict[Hashable, _Solved] = {}
        self._uses: Counter[Hashable] = Counter()
        self._saturate = saturating
        self._module = module
        self._written = frozenset[Var]()
        self._hints = hints
        self._time_limit = time_limit
        self._builder = BlockBuilder(module)
        self._fused = FusedFunctions(self._builder.add_func)
        self._library = Library()

    def module(self) -> IRModule:
        """The optimized functions, the fused ones in front of them."""
        made = {k: f for k, f in self._builder.get().functions.items() if k not in self.functions}
        return IRModule({**made, **self.functions})

    def reports(self) -> Iterator[RegionReport]:
        """One for each kind of region."""
        for kind, solved in self._solved.items():
            yield replace(solved.report, uses=self._uses[kind])

    def function(self, name: str, function: Function) -> Function:
        """`function` with each of its dataflow blocks optimized."""
        self._written = written_variables(function, self._module)
        return replace(function, body=self._sequence(name, function.body))

    def _sequence(self, name: str, seq: SeqExpr) -> SeqExpr:
        return replace(seq, blocks=tuple(self._block(name, b) for b in seq.blocks))

    def _block(self, name: str, block: Block) -> Block:
        if isinstance(block, DataflowBlock):
            return self._dataflow(name, block)
        bindings = tuple(
            replace(b, value=self._branches(name, b.value)) if isinstance(b, VarBinding) else b
            for b in block.bindings
        )
        return replace(block, bindings=bindings)

    def _branches(self, name: str, value: Expr) -> Expr:
        if not isinstance(value, If):
            return value
        true, false = (self._sequence(name, s) for s in (value.true_branch, value.false_branch))
        return replace(value, true_branch=true, false_branch=false)

    def _dataflow(self, name: str, block: DataflowBlock) -> DataflowBlock:
        regions = regions_of(block.bindings, _kept(block))
        encoded = [encode(region.bindings, region.outputs) for region in regions]
        leaves = (leaf for e in encoded for leaf in e.view.leaves)
        taken = {leaf.name for leaf in leaves if isinstance(leaf, Var)}
        taken |= {v.name for region in regions for v in region.outputs}
        binders = binders_of(block.bindings)
        bindings: list[Binding] = []
        for region, source in zip(regions, encoded, strict=True):
            solved = self._solve(name, source)
            now = solved.became
            named = reversed(list(source.origin.items()))
            bindings += decode(
                replace(solved.report.view, leaves=source.view.leaves, opaque=source.view.opaque),
                solved.report.extraction.program,
                [(v, now[source.origin[v]]) for v in region.outputs],
                {now[c]: v.name for v, c in named if c in now},
                self._fused,
                taken=taken,
                binders=binders,
            )
        if any(self._written.intersection(_same_tensor(b)) for b in bindings):
            return block  # a tensor of its own would become another's, which is written
        return DataflowBlock(tuple(bindings))

    def _solve(self, name: str, source: Encoded) -> _Solved:
        """The best program of a region; of regions that are alike, that of the first."""
        kind = (signature(source.view), assumptions.active())
        self._uses[kind] += 1
        if kind not in self._solved:
            saturated = self._saturate(source.view)
            view = source_first(saturated.view, source.view, saturated.became)
            chosen = extract(view, self._library, hints=self._hints, time_limit=self._time_limit)
            before = cost_of_view(source.view, self._library, hints=self._hints)
            report = RegionReport(name, saturated.report, chosen, before, view)
            self._solved[kind] = _Solved(report, saturated.became)
        return self._solved[kind]


def operators_in(module: IRModule) -> frozenset[str]:
    """The operators that functions of `module` call, and the one that encoding adds."""
    found = {BROADCAST}

    def visit(expr: Expr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            found.add(expr.op.name)

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    return frozenset(found)


def _same_tensor(binding: Binding) -> tuple[Var, ...]:
    """The variables of a binding that gives a tensor another name."""
    if isinstance(binding.value, Call):
        return ()
    return (binding.var, *free_vars(binding.value))


def _kept(block: DataflowBlock) -> list[Var]:
    """The outputs, before them the variables that their struct info names as shapes."""
    outputs = [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]
    named = frozenset[Var]().union(*(shape_variables_of(v.struct_info) for v in outputs))
    shapes = [b.var for b in block.bindings if b.var in named]
    return list(dict.fromkeys([*shapes, *outputs]))
