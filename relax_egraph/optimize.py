"""Optimize a module: each dataflow block through the e-graph, then constants folded.

    optimize(module)                       # IRModule -> IRModule
    explain(module, rules=["my.egg"])      # the same run, with every reason

A module is never changed; if anything fails, nothing is returned and nothing is half done.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from relax_egraph.egraph.decode import decode
from relax_egraph.egraph.encode import encode
from relax_egraph.egraph.engine import Budget, Report, RuleBook, saturate
from relax_egraph.egraph.fused import FusedFunctions
from relax_egraph.egraph.source_order import source_first
from relax_egraph.egraph.view import View
from relax_egraph.errors import IllFormed
from relax_egraph.extract import Extraction, cost_of_view, extract
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
from relax_egraph.ir.walk import free_vars
from relax_egraph.ir.written import written_variables
from relax_egraph.lower.library import Library
from relax_egraph.passes import Sequential, fold_constant, remove_all_unused

CLEAN_UP = Sequential((fold_constant, remove_all_unused), name="clean-up")


@dataclass(frozen=True, slots=True)
class BlockReport:
    """What happened to one dataflow block: `cost_before` is of its operators one by one."""

    function: str
    saturation: Report
    extraction: Extraction
    cost_before: float
    view: View


@dataclass(frozen=True, slots=True)
class Explanation:
    """The optimized module, and why it is what it is.  Costs are in seconds, by the cost model."""

    module: IRModule
    blocks: tuple[BlockReport, ...]

    @property
    def rules(self) -> Mapping[str, int]:
        """How often each rule matched, for rules that did; the most frequent first."""
        total = Counter[str]()
        for block in self.blocks:
            total.update(block.saturation.matches)
        return {name: count for name, count in total.most_common() if count}

    @property
    def cost_before(self) -> float:
        """The cost of the blocks as they came, each operator a kernel."""
        return sum(b.cost_before for b in self.blocks)

    @property
    def cost(self) -> float:
        """The cost of the program that was chosen."""
        return sum(b.extraction.cost for b in self.blocks)

    @property
    def bound(self) -> float:
        """No program in the e-graphs costs less: proven."""
        return sum(b.extraction.bound for b in self.blocks)

    @property
    def gap(self) -> float:
        """How far `cost` may be above the best, as a share of it."""
        return (self.cost - self.bound) / self.cost if self.cost else 0.0

    def table(self) -> Table:
        """Rules that fired, stop reasons, and costs, to be printed by rich."""
        table = Table("rule", "matches", title="what fired", title_justify="left")
        for name, count in self.rules.items():
            table.add_row(name, str(count))
        table.add_section()
        for block in self.blocks:
            table.add_row(f"{block.function}: saturation", _stop(block.saturation))
            table.add_row(f"{block.function}: extraction", block.extraction.status)
        table.add_section()
        table.add_row("cost before → after", f"{_us(self.cost_before)} → {_us(self.cost)}")
        table.add_row("proven bound, gap", f"{_us(self.bound)}, {self.gap:.2%}")
        return table

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, costs in seconds."""
        return {
            "rules": dict(self.rules),
            "stop": [_stop(b.saturation) for b in self.blocks],
            "status": [b.extraction.status for b in self.blocks],
            "cost_before": self.cost_before,
            "cost": self.cost,
            "bound": self.bound,
            "gap": self.gap,
        }

    def egraph_text(self) -> str:
        """The saturated e-graphs, one class a line: number, type, then its nodes."""
        return "\n".join(line for b in self.blocks for line in _view_lines(b))


def optimize(
    module: IRModule,
    rules: Sequence[str | Path] = (),
    *,
    without: Sequence[str] = (),
    hints: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    time_limit: float = 10.0,
) -> IRModule:
    """Return the best program that the rules prove equal to `module`, by the cost model.

    `rules` are the user's files (or texts) beside the rule book, `without` names families to
    leave out.  `hints` say at which values of the symbols programs are compared.  `budget`
    bounds saturation and `time_limit` the solver, in seconds; reaching either loses no program.
    Raises `RuleError` for a file that does not read, `SaturationError` for a rule that is
    found unsound.
    """
    explained = explain(
        module, rules, without=without, hints=hints, budget=budget, time_limit=time_limit
    )
    return explained.module


@deep(IllFormed, "the module is nested too deeply")
def explain(
    module: IRModule,
    rules: Sequence[str | Path] = (),
    *,
    without: Sequence[str] = (),
    hints: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    time_limit: float = 10.0,
) -> Explanation:
    """Optimize as `optimize` does, and return the module with the reasons."""
    book = RuleBook.default(user=rules, without=without)
    run = _Run(module, book, budget or Budget(), hints or {}, time_limit)
    for name, function in module.relax_functions():
        if not function.attrs.get("primitive"):
            run.functions[name] = run.function(name, function)
    return Explanation(CLEAN_UP(run.module()), tuple(run.reports))


class _Run:
    """One run over a module: the functions so far, and a report for each block."""

    def __init__(
        self,
        module: IRModule,
        book: RuleBook,
        budget: Budget,
        hints: Mapping[str, int],
        time_limit: float,
    ) -> None:
        self.functions: dict[str, BaseFunc] = dict(module.functions)
        self.reports: list[BlockReport] = []
        self._book = book
        self._module = module
        self._written = frozenset[Var]()
        self._budget = budget
        self._hints = hints
        self._time_limit = time_limit
        self._builder = BlockBuilder(module)
        self._fused = FusedFunctions(self._builder.add_func)
        self._library = Library()

    def module(self) -> IRModule:
        """The optimized functions, the fused ones in front of them."""
        made = {k: f for k, f in self._builder.get().functions.items() if k not in self.functions}
        return IRModule({**made, **self.functions})

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
        outputs = _kept(block)
        encoded = encode(block.bindings, outputs)
        saturated = saturate(encoded.view, self._book, self._budget)
        view = source_first(saturated.view, encoded.view, saturated.became)
        extraction = extract(view, self._library, hints=self._hints, time_limit=self._time_limit)
        before = cost_of_view(encoded.view, self._library, hints=self._hints)
        self.reports.append(BlockReport(name, saturated.report, extraction, before, view))
        now = saturated.became
        named = reversed(list(encoded.origin.items()))
        names = {now[c]: v.name for v, c in named if c in now}
        pairs = [(v, now[encoded.origin[v]]) for v in outputs]
        bindings = decode(view, extraction.program, pairs, names, self._fused)
        if any(self._written.intersection(_same_tensor(b)) for b in bindings):
            return block  # a tensor of its own would become another's, which is written
        return DataflowBlock(bindings)


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


def _stop(saturation: Report) -> str:
    """Why each phase ended, the same reason said once."""
    reasons = {p.stop for p in saturation.phases}
    if len(reasons) == 1:
        return str(reasons.pop())
    return "; ".join(str(p) for p in saturation.phases)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"


def _view_lines(block: BlockReport) -> list[str]:
    lines = [f"; {block.function}: roots {list(block.view.roots)}"]
    for number, eclass in block.view.classes.items():
        terms: list[str] = []
        for node in eclass.nodes:
            letter = "K" if eclass.sort == "kernel" else "R"
            parts = [f"{letter}.{node.op}", *(str(c) for c in node.children)]
            parts.extend(str(value) for _, value in node.attrs)
            parts.extend([str(node.key)] if node.key >= 0 else [])
            terms.append(f"({' '.join(parts)})")
        lines.append(f"{number}: {eclass.struct_info}  {'  '.join(terms)}")
    return lines
