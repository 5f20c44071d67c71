"""The importer: converts a program that ``torch.export`` returned to a module."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
)

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.results import emit_results, module_of
from relax_egraph.frontends.torch.decompositions import decomposed
from relax_egraph.frontends.torch.graph import Graph
from relax_egraph.frontends.torch.names import symbol_names
from relax_egraph.frontends.torch.symbols import Symbols
from relax_egraph.frontends.torch.tensors import array_of, check_supported
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols
from relax_egraph.ir.assumptions import Range
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import PrimStructInfo
from relax_egraph.passes.check_assumptions import range_checks


@dataclass(frozen=True, slots=True)
class Opened:
    """A program, decomposed, and the graph that its nodes are to be converted in.

    `params` are the parameters of ``main``; of `states`, the program writes the new values.  The
    inputs of the graph are `held` in parameters and constants.
    """

    program: ExportedProgram
    graph: Graph
    params: tuple[Var, ...]
    states: tuple[Var, ...]
    held: Mapping[torch.fx.Node, Any]

    def convert(self) -> None:
        """Convert all nodes in the open function; raises `ModelError` with all problems."""
        _check_ranges(self.program, self.graph, (*self.params, *self.states))
        for node, value in self.held.items():
            self.graph.values[node] = self.graph.taken(value, node.meta.get("val"))
        self.graph.convert(list(self.program.graph.nodes), self.program.graph_module)
        self.graph.check()

    def results(self) -> list[Expr]:
        """The user's results, then the new values of what is mutated."""
        (output,) = (n for n in self.program.graph.nodes if n.op == "output")
        return [_result(value, self.graph) for value in self.in_order(output.args[0])]

    def in_order(self, outputs: Sequence[Any]) -> list[Any]:
        """Those of the graph's `outputs` that ``main`` returns, in its order."""
        specs = self.program.graph_signature.output_specs
        kept = [
            (spec.kind != OutputKind.USER_OUTPUT, value)
            for spec, value in zip(specs, outputs, strict=True)
            if value is not None
            and spec.kind != OutputKind.TOKEN
            and not isinstance(spec.arg, ConstantArgument)
        ]
        return [value for _, value in sorted(kept, key=itemgetter(0))]


def import_program(program: ExportedProgram) -> IRModule:
    """See `relax_egraph.from_torch`."""
    opened = open_program(program)
    bb = opened.graph.bb
    with bb.function("main", [*opened.params, *opened.states]):
        opened.convert()
        emit_results(bb, opened.results())
    return module_of(bb)


def open_program(program: ExportedProgram) -> Opened:
    """`program`, decomposed, with its inputs and weights as values of a graph."""
    names = symbol_names(program)
    _check_inputs(program)
    program = decomposed(program)
    graph = Graph(BlockBuilder(fitting=True), Symbols(names))
    mutated = set(program.graph_signature.buffers_to_mutate.values())
    params, states, held = list[Var](), list[Var](), dict[torch.fx.Node, Any]()
    for node, spec in inputs_of(program):
        if isinstance(spec.arg, ConstantArgument):
            held[node] = spec.arg.value
        elif spec.kind == InputKind.TOKEN:
            held[node] = None  # it orders calls with effects, which have no converter
        elif spec.kind == InputKind.USER_INPUT:
            params.append(_parameter(node.name, node.meta["val"], graph))
            held[node] = _value(params[-1])
        elif spec.target in mutated:
            states.append(_parameter(node.name, node.meta["val"], graph))
            held[node] = states[-1]
        else:
            held[node] = Constant(array_of(weight_of(program, spec)))
    return Opened(program, graph, tuple(params), tuple(states), held)


def inputs_of(program: ExportedProgram) -> Iterator[tuple[torch.fx.Node, InputSpec]]:
    """The inputs of the graph, weights among them, each with what it stands for."""
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            yield node, specs[node.name]


def _check_inputs(program: ExportedProgram) -> None:
    """Raise `ModelError` for inputs that torch cannot even decompose the program with."""
    for node in program.graph.nodes:
        value: Any = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            try:
                check_supported(value)
            except ModelError as refusal:
                raise ModelError(f"input {node.name!r}: {refusal}") from None


def _parameter(name: str, value: Any, graph: Graph) -> Var:
    """The parameter for an input: a tensor, or an integer."""
    if isinstance(value, torch.Tensor):
        return Var(name, graph.passed_info(value))
    if isinstance(value, torch.SymInt):
        return Var(name, PrimStructInfo("int64", graph.symbols.dim(value)))
    raise ModelError(f"input {name!r} is of {type(value).__name__}, needs a tensor or an integer")


_UNSTATED = 2
"""The least size that torch takes for granted where the user names none; programs run below it."""


def _check_ranges(program: ExportedProgram, graph: Graph, params: Sequence[Var]) -> None:
    """Check the bounds that the user gave for sizes of `params`, which holds for all that follows.

    Sizes that are functions of others are checked by those.
    """
    bound = set[str]().union(*(bare_symbols(p.struct_info) for p in params))
    for symbol, limits in program.range_constraints.items():
        if not symbol.is_Symbol:
            continue
        name = dims.text(graph.symbols.symbol(symbol.name))
        if name not in bound:
            continue
        least = int(limits.lower) if limits.lower > _UNSTATED else 0
        most = int(limits.upper) if limits.upper.is_Integer else None
        for check in range_checks(name, Range(least, 1, most)):
            cast = check.cast(f"{name}_in_range")
            graph.bb.emit_match_cast(
                cast.value, cast.struct_info, cast.var.name, refusal=cast.refusal
            )


def _value(param: Var) -> Any:
    info = param.struct_info
    return info.value if isinstance(info, PrimStructInfo) else param


def weight_of(program: ExportedProgram, spec: InputSpec) -> torch.Tensor:
    """The parameter, buffer or constant that an input stands for."""
    name = spec.target
    kept: Mapping[str, Any] = program.constants
    is_constant = spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False
    value = kept.get(name) if is_constant else program.state_dict.get(name)
    if not isinstance(value, torch.Tensor):
        raise ModelError(f"input {spec.arg.name!r} stands for {name!r}, which is not a tensor")
    return value


def _result(output: Any, graph: Graph) -> Expr:
    """An output of the graph as an expression."""
    value = graph.given(graph.values[output] if isinstance(output, torch.fx.Node) else output)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return graph.computed(value)
    if value is None:
        raise ModelError(f"the result {output} of the program is one that is not supported")
    return value if isinstance(value, Expr) else PrimValue(value)
