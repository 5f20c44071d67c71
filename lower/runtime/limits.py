"""Limits of this processor, measured by loops: the peaks that kernels are compared with.

    limits = limit_kernels()
    limits["multiply_add"](out, turns)     # out: vectors that fill `accumulators` registers
    limits["copy"](x, y, n)                # y[:n] = x[:n]
    limits["copy_past_caches"](x, y, n)    # the same, with non-temporal stores
    limits["read"](x, out, n)              # sums of x[:n]

Arrays are of float32, the target of ``copy_past_caches`` is aligned to 64 bytes, and `n` is
rounded down to a multiple of `UNROLLED` vectors.
"""

from collections.abc import Callable, Mapping
from functools import cache

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, I32, I64, PTR, Module
from relax_egraph.lower.emit.target import Target, host
from relax_egraph.lower.jit.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.jit.linking import Kernel, link
from relax_egraph.lower.jit.machine_code import cached_object
from relax_egraph.lower.jit.object_cache import ObjectCache

UNROLLED = 8
"""The vectors that one iteration of a stream moves."""

ACCUMULATORS = 12
"""Independent sums: enough to hide the latency of two multiply-adds a cycle, and few enough for
16 registers beside both factors."""

_SCALE, _SHIFT = 0.5, 0.25
"""``a ← a · _SCALE + _SHIFT`` stays finite for any number of iterations."""


def flops_per_turn(target: Target | None = None) -> int:
    """The operations of one iteration of ``multiply_add``."""
    return 2 * ACCUMULATORS * (target or host()).lanes()


@cache
def limit_kernels(target: Target | None = None) -> Mapping[str, Kernel]:
    """The kernels of the loops, compiled for `target`, by default this processor."""
    target = target or host()
    objects = {name: _object(name, write, target) for name, (write, _) in _LOOPS.items()}
    kernels = {
        name: KernelInfo(name, ("float32",) * arrays, 1, 1) for name, (_, arrays) in _LOOPS.items()
    }
    return link(CompiledKernels(target, objects, kernels))


def limit_text(name: str, target: Target) -> str:
    """The LLVM module of the loop `name`."""
    module = Module(target)
    write, arrays = _LOOPS[name]
    f = Function(module, name, (PTR, *(PTR for _ in range(arrays)), I64), result=I32)
    write(f, target.lanes())
    f.finish(f.const(I32, 0))
    return str(module)


def _object(name: str, write: "_Writer", target: Target) -> bytes:
    return cached_object(limit_text(name, target), target, ObjectCache(None))


def _multiply_add(f: Function, lanes: int) -> None:
    _, out, turns = f.args
    type = F32.of(lanes)
    places = [f.address(out, k * lanes, F32) for k in range(ACCUMULATORS)]
    scale, shift = f.const(type, _SCALE), f.const(type, _SHIFT)
    with f.loop(0, turns, 1, [f.load(place, type) for place in places]) as loop:
        loop.carry(*(f.fma(a, scale, shift) for a in loop.values))
    for place, value in zip(places, loop.results, strict=True):
        f.store(value, place)


def _copy(f: Function, lanes: int) -> None:
    _streams(f, lanes, f.store)


def _copy_past_caches(f: Function, lanes: int) -> None:
    def store(value: Value, place: Value) -> None:
        size = lanes * F32.bits // 8
        f.line(f"store {value}, {place}, align {size}, !nontemporal !{{i32 1}}")

    _streams(f, lanes, store)


def _streams(f: Function, lanes: int, store: Callable[[Value, Value], None]) -> None:
    _, x, y, n = f.args
    step = lanes * UNROLLED
    with f.loop(0, n - f.binary("urem", n, step), step) as loop:
        source, target = f.address(x, loop.index, F32), f.address(y, loop.index, F32)
        values = [f.load(f.address(source, k * lanes, F32), F32.of(lanes)) for k in range(UNROLLED)]
        for k, value in enumerate(values):
            store(value, f.address(target, k * lanes, F32))


def _read(f: Function, lanes: int) -> None:
    _, x, out, n = f.args
    type, step = F32.of(lanes), lanes * UNROLLED
    zeros = [f.const(type, 0)] * UNROLLED
    with f.loop(0, n - f.binary("urem", n, step), step, zeros) as loop:
        source = f.address(x, loop.index, F32)
        places = [f.address(source, k * lanes, F32) for k in range(UNROLLED)]
        loop.carry(*(a + f.load(p, type) for a, p in zip(loop.values, places, strict=True)))
    for k, value in enumerate(loop.results):
        f.store(value, f.address(out, k * lanes, F32))


_Writer = Callable[[Function, int], None]

_LOOPS: Mapping[str, tuple[_Writer, int]] = {
    "multiply_add": (_multiply_add, 1),
    "copy": (_copy, 2),
    "copy_past_caches": (_copy_past_caches, 2),
    "read": (_read, 2),
}
"""For each loop the function that writes it, and its number of arrays; the last one is written."""
