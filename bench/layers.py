"""Single layers of networks as workloads: attention, prefill and decode, and convolutions."""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from bench.program import program_of
from bench.work import least_bytes, operations
from bench.workloads import Task, Wanted, Workload, drawn, on_two_threads
from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, tensor

HEADS, WIDTH = 12, 64

WITHIN = 1e-4
"""The tolerance of convolutions with fewer products; peers have none."""


def single_layers() -> dict[str, Workload]:
    """All layers, by name."""
    workloads: list[Workload] = []

    def add(name: str, wanted: Wanted, make: Callable[[], Task]) -> None:
        workloads.append(Workload(name, wanted, make))

    for length, wanted in _ATTENTION.items():
        name = f"attention {HEADS}×{WIDTH}, s = {length}"
        add(name, wanted, partial(_attention, length, length))
    add(
        f"attention {HEADS}×{WIDTH}, decode, n = 4096", {"limit": 0.9}, partial(_attention, 1, 4096)
    )
    for (extent, channels), wanted in _CONVOLUTION.items():
        add(f"conv 3×3, {channels}×{extent}²", wanted, partial(_convolution, extent, channels, 0.0))
    add(
        f"conv 3×3, 64×56², within {WITHIN:g}", {"peer": 2.4}, partial(_convolution, 56, 64, WITHIN)
    )
    return {workload.name: workload for workload in workloads}


_PREFILL = on_two_threads({"peer": 1.15, "limit": 0.75})
_ATTENTION: Mapping[int, Wanted] = {128: _PREFILL, 512: _PREFILL}
_CONVOLUTION: Mapping[tuple[int, int], Wanted] = {
    (56, 64): on_two_threads({"peer": 1.35}),
    (7, 512): {"peer": 1.0},
}


def _attention(queries: int, keys: int) -> Task:
    """Attention as exporters write it, on separate heads."""
    shapes = [(1, HEADS, n, WIDTH) for n in (queries, keys, keys)]
    query, key, value = (
        Var(name, tensor(s, "float32")) for name, s in zip("qkv", shapes, strict=True)
    )
    bb = BlockBuilder()
    with bb.function("main", [query, key, value]):
        with bb.dataflow():
            turned = bb.emit(call("permute_dims", key, axes=(0, 1, 3, 2)))
            product = bb.emit(call("matmul", query, turned))
            scores = bb.emit(call("divide", product, const(math.sqrt(WIDTH))))
            shares = bb.emit(call("nn.softmax", scores))
            out = bb.emit_output(call("matmul", shares, value))
        bb.emit_func_output(out)
    module, inputs = bb.get(), tuple(drawn(*s, seed=k) for k, s in enumerate(shapes))
    program = program_of(module)
    if queries == 1:
        return Task((module,), inputs, "read", least_bytes(program, inputs))
    return Task((module,), inputs, "arithmetic", operations(program, inputs))


def _convolution(extent: int, channels: int, tolerance: float) -> Task:
    """A 3 × 3 convolution with bias and relu, with a result as large as the data."""
    module = _convolving(extent, channels, tolerance)
    inputs = (drawn(1, channels, extent, extent),)
    return Task((module,), inputs, "arithmetic", operations(program_of(module), inputs))


def _convolving(extent: int, channels: int, tolerance: float) -> IRModule:
    weight = drawn(channels, channels, 3, 3, seed=1) / np.float32(math.sqrt(9 * channels))
    bias = drawn(channels, seed=2).reshape(1, channels, 1, 1)
    x = Var("x", tensor((1, channels, extent, extent), "float32"))
    bb = BlockBuilder()
    with bb.function("main", [x], attrs={"tolerance": tolerance} if tolerance else {}):
        with bb.dataflow():
            y = bb.emit(call("nn.conv2d", x, const(weight), padding=(1, 1)))
            biased = bb.emit(call("add", y, const(bias)))
            out = bb.emit_output(call("nn.relu", biased))
        bb.emit_func_output(out)
    return bb.get()
