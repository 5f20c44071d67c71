"""The workloads: a module, its inputs, its minimal work, and the bounds on ratios."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from bench.program import Array, program_of
from bench.system import empty
from bench.tensat import import_model, read_model
from relax_egraph import ir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, Function
from relax_egraph.ir.struct_info import TensorStructInfo

Limit: TypeAlias = Literal["arithmetic", "copy", "read"]
"""The limit of a workload: multiply-adds, copying input to output, or reading."""

Ratio: TypeAlias = Literal[
    "peer", "limit", "unoptimized", "two threads", "contended", "peer on two threads"
]
"""The units of our speed: the best peer; the machine's limit; the unoptimized module; one thread,
for two; the same with a core kept busy by another process; the best peer, both on two threads."""

Wanted: TypeAlias = Mapping[Ratio, float]
"""The lower bounds on ratios."""

WITHIN = 0.95
"""The share of a bound that applies on two threads."""


def on_two_threads(wanted: Wanted) -> Wanted:
    """`wanted`, with almost the same bounds on two threads relative to peers."""
    return {**wanted, "peer on two threads": round(WITHIN * wanted["peer"], 2)}


@dataclass(frozen=True, slots=True)
class Task:
    """A computation to measure.

    `modules` differ only in their weights, and take turns: there are several if weights should come
    from memory.  `amount` is the minimal number of operations of one run, or of bytes, depending on
    `limit`.
    """

    modules: tuple[ir.IRModule, ...]
    inputs: tuple[Array, ...]
    limit: Limit
    amount: float


@dataclass(frozen=True, slots=True)
class Workload:
    """A named measurement: the task by `make`, and the bounds on its speed.

    The optimizer and two threads are measured if a ratio to them is `wanted`.
    """

    name: str
    wanted: Wanted
    make: Callable[[], Task]


def workloads(models: Path | None = None) -> dict[str, Workload]:
    """All workloads, by name; NasRNN only if the folder of `models` is passed."""
    result: list[Workload] = []

    def add(name: str, wanted: Wanted, make: Callable[[], Task]) -> None:
        result.append(Workload(name, wanted, make))

    for rows, wanted in _GELU.items():
        add(f"gelu(x·w+b)+x ({rows}, 4096)", wanted, partial(_gelu, (rows, 4096)))
    for name, body in _ROWS.items():
        for rows, wanted in ((64, _ROW_WISE), (4096, _ROW_WISE | _PARALLEL)):
            add(f"{name} ({rows}, 1024)", wanted, partial(_rows, body, (rows, 1024)))
    for side in (128, 512, 1024, 2048):
        wanted = _PRODUCT | _TWO_THREADS if side >= 512 else _PRODUCT
        add(f"matmul {side}³", wanted, partial(_product, side))
    for extents, wanted in _DENSE.items():
        shape = "×".join(map(str, extents))
        add(f"matmul {shape}, weight", wanted, partial(_dense, extents))
    in_memory = partial(_dense, (1, 4096, 4096), copies=3)
    add("matmul 1×4096×4096, weight in memory", {"limit": 0.9}, in_memory)
    for rows, wanted in _MLP.items():
        add(f"MLP 784-128-10, n = {rows}", wanted, partial(_mlp, rows))
    if models is not None:
        add("NasRNN", _NETWORK, partial(_network, models / "nasrnn.json"))
    return {workload.name: workload for workload in result}


_PARALLEL: dict[Ratio, float] = {"two threads": 1.0, "contended": 0.95}
_TWO_THREADS: dict[Ratio, float] = {"two threads": 1.8, "contended": 0.95}
_ROW_WISE: dict[Ratio, float] = {"peer": 1.1}
_PRODUCT: dict[Ratio, float] = {"peer": 1.03, "limit": 0.92}
_GELU: Mapping[int, Wanted] = {
    1: {"peer": 1.3},
    64: {"peer": 1.5},
    4096: {"peer": 2.5, "limit": 0.85, **_PARALLEL},
}
_DENSE: Mapping[tuple[int, int, int], Wanted] = {
    (1, 784, 128): {},
    (7, 768, 768): {},
    (64, 256, 10): {},
    (1024, 256, 10): {"peer": 1.0},
    (64, 768, 3072): _PRODUCT | _TWO_THREADS,
    (100, 500, 1000): {},
}
_MLP: Mapping[int, Wanted] = {1: {"peer": 1.3}, 64: {"peer": 1.05}}
_NETWORK: Wanted = {"peer": 1.5, "unoptimized": 1.5}
_EPSILON = 1e-5
_LAYERS = (784, 128, 10)


def drawn(*shape: int, seed: int = 0) -> Array:
    """Normal float32 numbers, deterministic by `seed`, aligned to 64 bytes."""
    array = empty(math.prod(shape)).reshape(shape)
    np.random.default_rng(seed).standard_normal(dtype=np.float32, out=array)
    return array


def module_of(
    shapes: tuple[tuple[Dim, ...], ...], body: Callable[..., Call], dtype: str = "float32"
) -> ir.IRModule:
    """``main`` of parameters of these `shapes`, with `body` as its result."""
    params = [ir.Var(f"x{i}", ir.tensor(s, dtype)) for i, s in enumerate(shapes)]
    bb = ir.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(body(*params))
        bb.emit_func_output(out)
    return bb.get()


def _gelu(shape: tuple[int, int]) -> Task:
    def body(x: ir.Var, w: ir.Var, b: ir.Var) -> Call:
        scaled = ir.call("add", ir.call("multiply", x, w), b)
        return ir.call("add", ir.call("nn.gelu", scaled), x)

    shapes = (shape, shape[1:], shape[1:])
    inputs = tuple(drawn(*s, seed=k) for k, s in enumerate(shapes))
    moved = 8.0 * math.prod(shape)
    return Task((module_of(shapes, body),), inputs, "copy", moved)


def _softmax(x: ir.Var) -> Call:
    return ir.call("nn.softmax", x)


def _layer_norm(x: ir.Var) -> Call:
    gamma, beta = ir.const(drawn(1024, seed=1)), ir.const(drawn(1024, seed=2))
    return ir.call("nn.layer_norm", x, gamma, beta, axes=(-1,), epsilon=_EPSILON)


def _rms_norm(x: ir.Var) -> Call:
    weight = ir.const(drawn(1024, seed=1))
    return ir.call("nn.rms_norm", x, weight, axes=(-1,), epsilon=_EPSILON)


_ROWS = {"softmax": _softmax, "layernorm": _layer_norm, "rmsnorm": _rms_norm}


def _rows(body: Callable[[ir.Var], Call], shape: tuple[int, int]) -> Task:
    module = module_of((shape,), body)
    return Task((module,), (drawn(*shape),), "copy", 8.0 * math.prod(shape))


def _product(side: int) -> Task:
    shape = (side, side)
    module = module_of((shape, shape), partial(ir.call, "matmul"))
    inputs = (drawn(*shape), drawn(*shape, seed=1))
    return Task((module,), inputs, "arithmetic", 2.0 * side**3)


def _dense(extents: tuple[int, int, int], copies: int = 1) -> Task:
    """A product with a constant weight."""
    m, k, n = extents

    def with_weight(seed: int) -> ir.IRModule:
        weight = ir.const(drawn(k, n, seed=seed))

        def body(x: ir.Var) -> Call:
            return ir.call("matmul", x, weight)

        return module_of(((m, k),), body)

    modules = tuple(with_weight(seed) for seed in range(1, copies + 1))
    limit, amount = ("read", 4.0 * k * n) if m == 1 else ("arithmetic", 2.0 * m * k * n)
    return Task(modules, (drawn(m, k),), limit, amount)


def _mlp(rows: int) -> Task:
    weights = [k * n for k, n in pairwise(_LAYERS)]
    amount = 4.0 * sum(weights) if rows == 1 else 2.0 * rows * sum(weights)
    limit = "read" if rows == 1 else "arithmetic"
    return Task((_perceptron(),), (drawn(rows, _LAYERS[0]),), limit, amount)


@cache
def _perceptron() -> ir.IRModule:
    """Two layers, for any number of rows."""

    def body(x: ir.Var) -> Call:
        hidden = ir.call("nn.relu", _layer(x, 784, 128, 1))
        return _layer(hidden, 128, 10, 3)

    return module_of(((ir.symbol("n"), 784),), body)


def _layer(x: ir.Var | Call, k: int, n: int, seed: int) -> Call:
    weight = drawn(k, n, seed=seed) / np.float32(math.sqrt(k))
    bias = ir.const(drawn(n, seed=seed + 1))
    return ir.call("add", ir.call("matmul", x, ir.const(weight)), bias)


def _network(file: Path) -> Task:
    module = import_model(read_model(file))
    main = module["main"]
    assert isinstance(main, Function)
    infos = [p.struct_info for p in main.params]
    shapes = [[int(d) for d in i.dims or ()] for i in infos if isinstance(i, TensorStructInfo)]
    inputs = tuple(drawn(*shape, seed=k) for k, shape in enumerate(shapes))
    read = sum(c.nbytes for c in program_of(module).constants.values())
    return Task((module,), inputs, "read", float(read))
