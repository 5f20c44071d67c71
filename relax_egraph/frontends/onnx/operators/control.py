"""Conditionals and loops."""

from collections.abc import Sequence

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.functions import either
from relax_egraph.frontends.onnx.frame import Frame
from relax_egraph.frontends.onnx.loops import Loop, Turn, run_loop, stacked, tensor_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.frontends.onnx.subgraphs import call_graph, convert_graph
from relax_egraph.frontends.onnx.values import Scope
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple, const

_ENDLESS = 2**63 - 1


@converts("If")
def conditional(node: Node) -> Sequence[Expr]:
    """One of two subgraphs, which have no inputs; a constant condition selects it at build time."""
    then, other = (node.attrs.graph(name) for name in ("then_branch", "else_branch"))
    condition = node.elements(0)
    if condition is not None and isinstance(condition.dims[0], bool):
        frame = node.frame
        inner = Scope(frame.scope.bb, dict(frame.scope.values))
        selected = then if condition.dims[0] else other
        return convert_graph(
            selected, (), Frame(inner, frame.model, frame.opsets, frame.attributes, frame.depth + 1)
        )
    calls = [call_graph(g, g.name or "branch", node.frame) for g in (then, other)]
    return node.fields(node.bind(either(_scalar(node, node[0]), *calls)))


def _scalar(node: Node, value: Expr) -> Expr:
    """`value`, of one element, as a tensor of rank 0."""
    return value if info_of(value).ndim == 0 else node.emit("reshape", value, ShapeExpr(()))


@converts("Loop")
def loop(node: Node) -> tuple[Expr, ...]:
    """A subgraph, repeated up to a number of times, and while its condition holds."""
    graph = node.attrs.graph("body")
    last = node.get(0)
    last = const(_ENDLESS, "int64") if last is None else _scalar(node, last)
    go_on = node.get(1)
    go_on = const(True, "bool") if go_on is None else _scalar(node, go_on)
    state = tuple(node[place] for place in range(2, len(node.operands)))

    def body(frame: Frame, turn: Turn) -> list[Expr]:
        return convert_graph(graph, [turn.number, turn.go_on, *turn.state], frame)

    count = len(graph.output) - 1 - len(state)
    if count < 0 or len(graph.input) != len(state) + 2:
        has = f"{len(graph.input)} inputs and {len(graph.output)} outputs"
        raise ModelError(f"it has {len(state)} states, its body {has}")
    turns = Loop(node.op, body, state, count, decides=True, graph=graph)
    looped = run_loop(turns, last, go_on, node.frame)
    scans = zip(looped.scan_outputs, looped.kinds, strict=True)
    return (
        *(node.bind(s) for s in looped.state),
        *(stacked(node, g, kind, 0) for g, kind in scans),
    )


@converts("Scan")
def scan(node: Node) -> Sequence[Expr]:
    """A subgraph for each slice of some tensors."""
    if node.version < 9:
        return _scan_batch(node)
    operands = node.all()
    count = _scan_inputs(node, len(operands))
    states = len(operands) - count
    axes = [
        node.normalized(a, info_of(s).ndim)
        for a, s in zip(_each(node, "scan_input_axes", count), operands[states:], strict=True)
    ]
    backward = _each(node, "scan_input_directions", count)
    return _scanned(node, operands[:states], operands[states:], axes, backward)


def _scan_inputs(node: Node, most: int) -> int:
    """The number of scanned tensors, which are the last operands."""
    count = node.attrs.integer("num_scan_inputs")
    if not 1 <= count <= most:
        raise ModelError(f"it goes over {count} tensors, of {most}")
    return count


def _scan_batch(node: Node) -> list[Expr]:
    """A scan of opset 8: one for each element of the batch, the first axis of all tensors."""
    if node.has(0):
        raise ModelError("scans over sequences of different lengths, of opset 8, are not here")
    operands = [node[place] for place in range(1, len(node.operands))]
    count = _scan_inputs(node, len(operands))
    states, backward = len(operands) - count, _each(node, "directions", count)
    batch = node.shape(1)[0]
    if not isinstance(batch, int) or batch < 1:
        raise ModelError("it scans a batch of unknown extent or none, of opset 8")
    rows: list[Sequence[Expr]] = []
    for number in range(batch):
        at = const(number, "int64")
        slices = [node.emit("take", o, at, axis=0) for o in operands]
        rows.append(_scanned(node, slices[:states], slices[states:], [0] * count, backward))
    return [node.emit("stack", Tuple(tuple(parts)), axis=0) for parts in zip(*rows, strict=True)]


def _scanned(
    node: Node,
    state: Sequence[Expr],
    scanned: Sequence[Expr],
    axes: Sequence[int],
    backward: Sequence[int],
) -> list[Expr]:
    """The final states, and the stacked outputs for the slices of `scanned` along `axes`."""
    graph = node.attrs.graph("body")
    if not scanned or len(graph.input) != len(state) + len(scanned):
        has = f"{len(state)} states and {len(scanned)} tensors to go over"
        raise ModelError(f"it has {has}, its body {len(graph.input)} inputs")
    scanned = tuple(
        node.emit("flip", s, axis=a) if b else s
        for s, a, b in zip(scanned, axes, backward, strict=True)
    )
    shape = info_of(scanned[0]).dims
    if shape is None:
        raise ModelError("the shape of what it goes over is not known")
    extent = node.emit("shape_to_tensor", ShapeExpr((shape[axes[0]],)))

    def body(frame: Frame, turn: Turn) -> list[Expr]:
        bb = frame.scope.bb
        slices = [
            bb.emit(call("take", s, turn.number, axis=a))
            for s, a in zip(turn.passed, axes, strict=True)
        ]
        return convert_graph(graph, [*turn.state, *slices], frame)

    num_outputs = len(graph.output) - len(state)
    if num_outputs < 0:
        raise ModelError(f"it has {len(state)} states, its body {len(graph.output)} outputs")
    turns = Loop(node.op, body, tuple(state), num_outputs, passed=scanned, graph=graph)
    finished = run_loop(turns, _scalar(node, extent), const(True, "bool"), node.frame)
    outputs = len(finished.scan_outputs)
    scans = zip(
        finished.scan_outputs,
        finished.kinds,
        _each(node, "scan_output_axes", outputs),
        _each(node, "scan_output_directions", outputs),
        strict=True,
    )
    whole: list[Expr] = []
    for values, kind, axis, reverse in scans:
        place = node.normalized(axis, tensor_of(kind).ndim + 1)
        result = stacked(node, values, kind, place)
        whole.append(node.emit("flip", result, axis=place) if reverse else result)
    return [*(node.bind(s) for s in finished.state), *whole]


def _each(node: Node, name: str, count: int) -> tuple[int, ...]:
    values = node.attrs.integers(name) if node.attrs.has(name) else (0,) * count
    if len(values) != count:
        raise ModelError(f"its {name} are {list(values)}, needs {count} values")
    return values
