"""The workloads: a module, its inputs, and the same computation by numpy."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph import ir
from relax_egraph.ir.expr import Call

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of the table; `peer` gets the inputs, in the dtype in which it is to compute."""

    name: str
    module: ir.IRModule
    inputs: tuple[Array, ...]
    peer: Callable[..., Array]


def workloads() -> Iterator[Workload]:
    """Every workload, with seeded inputs."""
    rng = np.random.default_rng(0)
    yield from _mlp(rng)
    yield _gelu(rng)
    yield _softmax(rng)
    yield _matmul(rng)


def _mlp(rng: np.random.Generator) -> Iterator[Workload]:
    sizes = ((784, 128), (128, 10))
    weights = [_normal(rng, k, n) / math.sqrt(k) for k, n in sizes]
    biases = [_normal(rng, n) for _, n in sizes]
    x = ir.Var("x", ir.tensor((ir.symbol("n"), 784), "float32"))
    bb = ir.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            product = ir.call("matmul", x, ir.const(weights[0]))
            hidden = bb.emit(ir.call("nn.relu", ir.call("add", product, ir.const(biases[0]))))
            product = bb.emit(ir.call("matmul", hidden, ir.const(weights[1])))
            out = bb.emit_output(ir.call("add", product, ir.const(biases[1])))
        bb.emit_func_output(out)

    def peer(rows: Array) -> Array:
        w0, w1, b0, b1 = (a.astype(rows.dtype, copy=False) for a in (*weights, *biases))
        return np.maximum(rows @ w0 + b0, 0) @ w1 + b1

    for n in (1, 64):
        yield Workload(f"MLP 784-128-10, n = {n}", bb.get(), (_normal(rng, n, 784),), peer)


def _gelu(rng: np.random.Generator) -> Workload:
    shape = (64, 4096)
    module = _single(
        (shape, shape[1:], shape[1:]),
        lambda p: ir.call(
            "add", ir.call("nn.gelu", ir.call("add", ir.call("multiply", p[0], p[1]), p[2])), p[0]
        ),
    )
    inputs = (_normal(rng, *shape), _normal(rng, shape[1]), _normal(rng, shape[1]))
    return Workload("gelu(x·w+b)+x (64, 4096)", module, inputs, _gelu_by_numpy)


def _gelu_by_numpy(x: Array, w: Array, b: Array) -> Array:
    u = x * w + b
    return u * x.dtype.type(0.5) * (1 + _erf(u * x.dtype.type(math.sqrt(0.5)))) + x


def _erf(x: Array) -> Array:
    """Abramowitz and Stegun 7.1.26 in float32; the C library's erf in float64."""
    if x.dtype == np.float64:
        return np.vectorize(math.erf)(x)
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    p = t * np.float32(1.061405429) - np.float32(1.453152027)
    for c in (1.421413741, -0.284496736, 0.254829592):
        p = p * t + np.float32(c)
    return np.sign(x) * (1 - p * t * np.exp(-x * x))


def _softmax(rng: np.random.Generator) -> Workload:
    def peer(x: Array) -> Array:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    module = _single(((512, 768),), lambda p: ir.call("nn.softmax", p[0]))
    return Workload("softmax (512, 768)", module, (_normal(rng, 512, 768),), peer)


def _matmul(rng: np.random.Generator) -> Workload:
    cube = (512, 512)
    module = _single((cube, cube), lambda p: ir.call("matmul", p[0], p[1]))
    inputs = (_normal(rng, *cube), _normal(rng, *cube))
    return Workload("matmul 512³", module, inputs, np.matmul)


def _single(
    shapes: tuple[tuple[int, ...], ...], body: Callable[[Sequence[ir.Var]], Call]
) -> ir.IRModule:
    params = [ir.Var(f"x{i}", ir.tensor(s, "float32")) for i, s in enumerate(shapes)]
    bb = ir.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(body(params))
        bb.emit_func_output(out)
    return bb.get()


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)
