"""Graphs that AOTAutograd traced, as modules: what they take and what they give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.complex_parts import Parts
from relax_egraph.frontends.building.results import module_of
from relax_egraph.frontends.torch.graph import Graph
from relax_egraph.frontends.torch.symbols import Symbols
from relax_egraph.frontends.torch.tensors import Array
from relax_egraph.frontends.torch_backend.layouts import Order, inverse, memory_order
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import PrimStructInfo, TensorStructInfo, known_extents, tensor


@dataclass(frozen=True, slots=True)
class Passed:
    """An output of a graph that is the input `place`, itself."""

    place: int


@dataclass(frozen=True, slots=True)
class Made:
    """An output of a graph that is result `place` of the module, with its axes permuted."""

    place: int
    axes: Order | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """An output of a graph of complex numbers: result `place` of the module has the parts."""

    place: int


@dataclass(frozen=True, slots=True)
class Known:
    """An output of a graph that is `value` at all times."""

    value: Any


Output = Passed | Made | Joined | Known


@dataclass(frozen=True, slots=True)
class Traced:
    """A graph as a module: `takes` are the inputs that are arguments of ``main``.

    Each is the place of an input, and the order of axes in which ``main`` takes it.  ``main``
    returns a tuple.  `hints` are the sizes that the graph was traced at.  If nodes cannot
    be converted there is no `module`, but `problems`, by node.
    """

    module: IRModule | None
    takes: tuple[tuple[int, Order | None], ...]
    outputs: tuple[Output, ...]
    hints: Mapping[str, int]
    problems: Mapping[fx.Node, str]


def traced(module: fx.GraphModule, weights: Mapping[int, Array]) -> Traced:
    """`module`, of ATen operators, with the inputs that are `weights`, by place, as constants."""
    graph = Graph(BlockBuilder(fitting=True), Symbols())
    nodes = list(module.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder"]
    orders: dict[int, Order | None] = {}
    params = _parameters(inputs, weights, orders, graph)
    hints = _hints(inputs, graph)
    with graph.bb.function("main", list(params.values())):
        for place, node in enumerate(inputs):
            if node not in graph.values:
                continue
            value: Any = graph.values[node]
            if (order := orders.get(place)) is not None:
                value = graph.bb.emit(call("permute_dims", value, axes=inverse(order)))
            graph.values[node] = graph.taken(value, node.meta.get("val"))
        graph.convert(nodes, module)
        (last,) = (n for n in nodes if n.op == "output")
        given = last.args[0] if isinstance(last.args[0], list | tuple) else (last.args[0],)
        results: list[Expr] = []
        outputs = () if graph.problems else _outputs(given, inputs, graph, results)
        graph.bb.emit_func_output(Tuple(tuple(results)))
    if graph.problems:
        return Traced(None, (), (), {}, graph.problems)
    takes = tuple((place, orders.get(place)) for place in params)
    return Traced(module_of(graph.bb), takes, outputs, hints, {})


def _parameters(
    inputs: Sequence[fx.Node],
    weights: Mapping[int, Array],
    orders: dict[int, Order | None],
    graph: Graph,
) -> dict[int, Var]:
    """The parameters for `inputs`, by place: tensors, and sizes that no tensor's shape tells.

    The orders of axes of those that are tensors are added to `orders`.
    """
    params: dict[int, Var] = {}
    for place, node in enumerate(inputs):
        value: Any = node.meta.get("val")
        if place in weights:
            graph.values[node] = Constant(weights[place])
        elif isinstance(value, torch.Tensor):
            try:
                info = graph.passed_info(value)  # which refuses what has no strides
                orders[place] = _order(node)
                params[place] = Var(node.name, _in_order(info, orders[place]))
                graph.values[node] = params[place]
            except ModelError as refusal:
                graph.unsupported[node] = str(refusal)
    shapes = [extent for p in params.values() for extent in known_extents(p.struct_info)]
    for place, node in enumerate(inputs):
        value = node.meta.get("val")
        if not isinstance(value, torch.SymInt | int) or isinstance(value, bool):
            continue
        size = graph.symbols.dim(value)
        graph.values[node] = size
        if not isinstance(size, int) and size not in shapes:
            params[place] = Var(node.name, PrimStructInfo("int64", size))
    return dict(sorted(params.items()))


def _outputs(
    given: Sequence[Any], inputs: Sequence[fx.Node], graph: Graph, results: list[Expr]
) -> tuple[Output, ...]:
    """Where each output comes from; what ``main`` makes is added to `results`."""
    places = {node: place for place, node in enumerate(inputs)}
    made: dict[fx.Node, Output] = {}
    outputs: list[Output] = []
    for output in given:
        if not isinstance(output, fx.Node):
            outputs.append(Known(output))
        elif output in places:
            outputs.append(Passed(places[output]))
        else:
            if output not in made:
                made[output] = _made(output, graph, results)
            outputs.append(made[output])
    return tuple(outputs)


def _made(output: fx.Node, graph: Graph, results: list[Expr]) -> Output:
    """Where the value of a node comes from: `results` get it, unless it is a known integer."""
    value: Any = graph.values[output]
    if isinstance(value, int):
        return Known(value)
    place = len(results)
    if isinstance(value, Parts):
        results.append(graph.given(value))
        return Joined(place)
    if not isinstance(value, Expr):
        value = PrimValue(value)
    order = _order(output)
    if order is None:
        results.append(value)
        return Made(place)
    results.append(graph.bb.emit(call("permute_dims", value, axes=order)))
    return Made(place, inverse(order))


def _order(node: fx.Node) -> Order | None:
    """The order of axes in memory, unless it is that of the axes; complex numbers are copied."""
    value: Any = node.meta.get("val")
    is_real = isinstance(value, torch.Tensor) and not value.dtype.is_complex
    return memory_order(value) if is_real else None


def _in_order(info: TensorStructInfo, order: Order | None) -> TensorStructInfo:
    """`info` of the tensor whose axes are in `order`."""
    if order is None:
        return info
    assert info.dims is not None
    return tensor(tuple(info.dims[axis] for axis in order), info.dtype)


def _hints(inputs: Sequence[fx.Node], graph: Graph) -> dict[str, int]:
    """The sizes that symbols had when the graph was traced."""
    found: dict[str, int] = {}
    for node in inputs:
        value: Any = node.meta.get("val")
        sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
        for size in sizes:
            if not isinstance(size, torch.SymInt) or not size.node.expr.is_Symbol:
                continue
            dim = graph.symbols.dim(size)
            if size.node.hint is not None and not isinstance(dim, int):
                found[dims.text(dim)] = int(size.node.hint)
    return found
