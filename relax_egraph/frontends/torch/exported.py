"""The importer: converts a program that ``torch.export`` returned to a module."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    SymIntArgument,
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


def import_program(program: ExportedProgram) -> IRModule:
    """See `relax_egraph.from_torch`."""
    names = symbol_names(program)
    _check_inputs(program)
    program = decomposed(program)
    graph = Graph(BlockBuilder(fitting=True), Symbols(names))
    mutated = set(program.graph_signature.buffers_to_mutate.values())
    params, states = list[Var](), list[Var]()
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec = specs[node.name]
        if isinstance(spec.arg, ConstantArgument):
            graph.values[node] = spec.arg.value
        elif spec.kind == InputKind.USER_INPUT:
            params.append(_parameter(node.name, node.meta["val"], graph))
            graph.values[node] = _value(params[-1])
        elif spec.target in mutated:
            states.append(_parameter(node.name, node.meta["val"], graph))
            graph.values[node] = states[-1]
        else:
            graph.values[node] = Constant(array_of(_weight(program, spec)))
    with graph.bb.function("main", [*params, *states]):
        _check_ranges(program, graph, [*params, *states])
        graph.convert(list(program.graph.nodes), program.graph_module)
        graph.check()
        (output,) = (n for n in program.graph.nodes if n.op == "output")
        results = list(_results(program, graph, output.args[0]))
        emit_results(graph.bb, results)
    return module_of(graph.bb)


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
        return Var(name, graph.info(value))
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


def _weight(program: ExportedProgram, spec: InputSpec) -> torch.Tensor:
    """The parameter, buffer or constant that an input stands for."""
    name = spec.target
    kept: Mapping[str, Any] = program.constants
    is_constant = spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False
    value = kept.get(name) if is_constant else program.state_dict.get(name)
    if not isinstance(value, torch.Tensor):
        raise ModelError(f"input {spec.arg.name!r} stands for {name!r}, which is not a tensor")
    return value


def _results(program: ExportedProgram, graph: Graph, outputs: Any) -> Iterator[Expr]:
    """The user's results, then the new values of what is mutated."""
    late: list[Expr] = []
    for spec, output in zip(program.graph_signature.output_specs, outputs, strict=True):
        value = graph.values[output] if isinstance(output, torch.fx.Node) else output
        if value is None or isinstance(spec.arg, ConstantArgument):
            continue
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            value = graph.computed(value)
        elif isinstance(spec.arg, SymIntArgument) and not isinstance(value, Expr):
            value = PrimValue(value)
        if spec.kind == OutputKind.USER_OUTPUT:
            yield value
        else:
            late.append(value)
    yield from late
