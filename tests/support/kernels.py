"""Compilation of hand-written loop functions, and runs of them on arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.lower.emit.target import Target, host, portable
from relax_egraph.lower.jit import Kernel, compile_kernels, link
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import For, LoopKind, PrimFunc, Stmt

Array = npt.NDArray[Any]

Elementwise = (
    Callable[[Any], TirExpr] | Callable[[Any, Any], TirExpr] | Callable[[Any, Any, Any], TirExpr]
)
"""An expression of the elements of one, two or three arrays."""


def runs_here(target: Target) -> bool:
    """Whether this processor runs code for `target`."""
    return target.architecture == host().architecture and not host().lacks(target)


TARGETS = [t for t in (host(), portable("avx2", "fma"), portable()) if runs_here(t)]
"""This processor, and narrower ones that it can emulate."""

SIZES = [0, 1, 5, 15, 16, 17, 31, 33, 64, 100, 1003]

FLOATS = ["float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

n, m = dims.symbol("n"), dims.symbol("m")


def buffer(name: str, dtype: str, *shape: Dim) -> Buffer:
    """A buffer in memory."""
    return Buffer(name, shape, dtype)


def loop(var: TirVar, extent: Dim, body: Stmt, kind: LoopKind = "vectorized") -> For:
    """``for var in range(extent): body``."""
    return For(var, from_dim(extent), kind, body)


def compiled(function: PrimFunc, target: Target | None = None) -> Kernel:
    """`function` as a callable."""
    return link(compile_kernels({"kernel": function}, target))["kernel"]


def run(
    function: PrimFunc,
    inputs: Sequence[Array],
    *shapes: tuple[int, ...],
    target: Target | None = None,
    **symbols: int,
) -> Array:
    """The output of `function`, of `shape`; fails if memory around it is written."""
    outputs = [guarded(s, b.dtype) for s, b in zip(shapes, function.outputs, strict=True)]
    kernel = compiled(function, target)

    kernel(*inputs, *outputs, *(symbols[name] for name in function.symbols))

    for output in outputs:
        assert_untouched(output)
    return outputs[0]


_MARGIN = 256


def guarded(shape: tuple[int, ...], dtype: str) -> Array:
    """An array in the middle of a block of bytes 0xA5."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.full(size + 2 * _MARGIN, 0xA5, np.uint8)
    return memory[_MARGIN : _MARGIN + size].view(dtype).reshape(shape)


def assert_untouched(array: Array) -> None:
    """Check that the bytes around an array of `guarded` are unchanged."""
    memory = array
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    assert (memory[:_MARGIN] == 0xA5).all()
    assert (memory[-_MARGIN:] == 0xA5).all()


def sample(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """Random numbers: of the whole range of an integer, around 0 for floats."""
    random = np.random.default_rng(seed)
    if is_float(dtype):
        return random.standard_normal(shape).astype(dtype)
    if dtype == "bool":
        return random.random(shape) < 0.5
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
