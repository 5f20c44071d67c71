"""Networks as lists of layers, in the neutral format of the Tensat benchmark, as modules.

A file is ``{"name", "nodes", "outputs"}``.  A node has `id`, `op`, `inputs` (the nodes that it
reads), `attrs` and the `shape` of its result; data is NCHW, weights are OIHW.  Files have only the
shapes of weights: weights are drawn from a seeded generator, scaled to keep the magnitude of
activations.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, shape, tensor
from relax_egraph.ir.expr import Attr, Constant, Expr, Tuple, TupleGetItem
from relax_egraph.ir.struct_info import TensorStructInfo

BATCH_NORM_INPUTS = ("data", "gamma", "beta", "mean", "variance")
"""The operands of a node `batchnorm`, in order."""


@dataclass(frozen=True, slots=True)
class Node:
    """One layer, or an ``input`` or a ``weight``."""

    id: int
    op: str
    inputs: tuple[int, ...]
    attrs: Mapping[str, Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """Nodes in a valid order of execution, and the results among them."""

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    def needed(self) -> frozenset[int]:
        """The nodes that the results depend on: files have unused weights."""
        reads = {n.id: n.inputs for n in self.nodes}
        reached: set[int] = set()
        todo = list(self.outputs)
        while todo:
            node = todo.pop()
            if node not in reached:
                reached.add(node)
                todo.extend(reads[node])
        return frozenset(reached)


def read_model(path: Path) -> Model:
    """The model in the file `path`."""
    document = json.loads(path.read_text("utf-8"))
    nodes = tuple(
        Node(n["id"], n["op"], tuple(n["inputs"]), n["attrs"], tuple(n["shape"]))
        for n in document["nodes"]
    )
    return Model(document["name"], nodes, tuple(document["outputs"]))


def import_model(model: Model, seed: int = 0) -> IRModule:
    """``main`` of the model's inputs, in one dataflow block; several results are a tuple.

    Raises `ValueError` for a node whose shape differs from the file, or of an unknown operator.
    """
    needed = model.needed()
    nodes = [n for n in model.nodes if n.id in needed]
    params = {n.id: Var(f"x{n.id}", tensor(n.shape, "float32")) for n in nodes if n.op == "input"}
    importer = _Importer(model.name, np.random.default_rng(seed), params)
    bb = importer.bb
    with bb.function("main", list(params.values())):
        with bb.dataflow():
            for node in nodes:
                importer.add(node, _reader_of(node, nodes))
            results = [bb.emit_output(importer.values[o]) for o in model.outputs]
        bb.emit_func_output(results[0] if len(results) == 1 else Tuple(tuple(results)))
    return bb.get()


def _reader_of(node: Node, nodes: Sequence[Node]) -> Node | None:
    """The first node that reads a weight."""
    if node.op != "weight":
        return None
    return next((n for n in nodes if node.id in n.inputs), None)


class _Importer:
    """The values of the nodes so far."""

    def __init__(self, name: str, random: np.random.Generator, params: Mapping[int, Var]) -> None:
        self.bb = BlockBuilder()
        self.values: dict[int, Expr] = dict(params)
        self._name = name
        self._random = random

    def add(self, node: Node, reader: Node | None) -> None:
        """Emit `node`; `reader` is the node that a weight is for."""
        if node.op == "input":
            return
        if node.op == "weight":
            self.values[node.id] = self._weight(node, reader)
            return
        layer = _LAYERS.get(node.op)
        if layer is None:
            raise ValueError(f"{self._name}: node {node.id}: no operator {node.op!r}")
        value = layer(self, node, [self.values[i] for i in node.inputs])
        info = value.struct_info
        if not isinstance(info, TensorStructInfo) or info.dims != node.shape:
            operands = ", ".join(str(self.values[i].struct_info) for i in node.inputs)
            raise ValueError(
                f"{self._name}: node {node.id}: {node.op} of {operands} with {dict(node.attrs)} "
                f"is {info}, needs shape {list(node.shape)}"
            )
        self.values[node.id] = value

    def emit(self, name: str, *args: Expr, **attrs: Attr) -> Var:
        return self.bb.emit(call(name, *args, **attrs))

    def _weight(self, node: Node, reader: Node | None) -> Constant:
        """Small numbers; the scales and variances of a batch normalisation are near one."""
        drawn = self._random.standard_normal(node.shape, np.float32)
        if reader is not None and reader.op == "batchnorm":
            part = BATCH_NORM_INPUTS[reader.inputs.index(node.id)]
            around = 1 if part in ("gamma", "variance") else 0
            return const(np.clip(around + drawn * np.float32(0.1), around - 0.5, around + 0.5))
        fan_in = math.prod(node.shape[1:]) if len(node.shape) == 4 else node.shape[0]
        drawn *= np.float32(1 / math.sqrt(fan_in))
        return const(drawn)


# --- layers -----------------------------------------------------------------------------

_Layer = Callable[[_Importer, Node, list[Expr]], Expr]


def _elementwise(name: str) -> _Layer:
    def layer(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
        return to.emit(name, *operands)

    return layer


def _conv2d(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
    data, weight = operands
    strides, kernel = node.attrs["stride"], _shape_of(weight)[2:]
    result: Expr = to.emit(
        "nn.conv2d",
        data,
        weight,
        strides=tuple(strides),
        padding=_padding(node, _shape_of(data)[2:], kernel, strides),
        groups=node.attrs["groups"],
    )
    return to.emit("nn.relu", result) if node.attrs["activation"] == "relu" else result


def _pool(name: str) -> _Layer:
    def layer(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
        kernel, strides = node.attrs["kernel"], node.attrs["stride"]
        padding = _padding(node, _shape_of(operands[0])[2:], kernel, strides)
        sizes = {"pool_size": tuple(kernel), "strides": tuple(strides), "padding": padding}
        return to.emit(name, operands[0], **sizes)

    return layer


def _padding(
    node: Node, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """The zeros on each side; for ``SAME``, as many as ``⌈extent / stride⌉`` results need."""
    if node.attrs["padding"] == "VALID":
        return (0, 0)
    wanted = [max(k - (e % s or s), 0) for e, k, s in zip(extents, kernel, strides, strict=True)]
    return tuple((total + 1) // 2 for total in wanted)


def _matmul(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
    x, y = operands
    if node.attrs.get("transpose_b"):
        y = to.emit("permute_dims", y)
    return to.emit("matmul", x, y)


def _transpose(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
    """`perm`, or (`raw`) the rank and then the permutation.

    If the shape is still the operand's, the product that reads it transposes it (`transpose_b`).
    """
    (x,) = operands
    known = _shape_of(x)
    perm = node.attrs["perm"] if "perm" in node.attrs else node.attrs["raw"][1 : 1 + len(known)]
    if tuple(known[p] for p in perm) != node.shape == known:
        return x
    return to.emit("permute_dims", x, axes=tuple(perm))


def _concat(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
    return to.emit("concat", Tuple(tuple(operands)), axis=node.attrs["axis"])


def _reshape(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
    return to.emit("reshape", operands[0], shape(node.shape))


def _batchnorm(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
    normed = to.emit("nn.batch_norm", *operands, axis=1, training=False)
    return to.bb.emit(TupleGetItem(normed, 0))


def _dropout(to: _Importer, node: Node, operands: list[Expr]) -> Expr:
    return to.bb.emit(TupleGetItem(to.emit("nn.dropout", *operands), 0))


_LAYERS: Mapping[str, _Layer] = {
    "add": _elementwise("add"),
    "mul": _elementwise("multiply"),
    "relu": _elementwise("nn.relu"),
    "sigmoid": _elementwise("sigmoid"),
    "tanh": _elementwise("tanh"),
    "conv2d": _conv2d,
    "maxpool": _pool("nn.max_pool2d"),
    "avgpool": _pool("nn.avg_pool2d"),
    "matmul": _matmul,
    "transpose": _transpose,
    "concat": _concat,
    "reshape": _reshape,
    "batchnorm": _batchnorm,
    "dropout": _dropout,
}


def _shape_of(value: Expr) -> tuple[int, ...]:
    info = value.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return tuple(d for d in info.dims if isinstance(d, int))
