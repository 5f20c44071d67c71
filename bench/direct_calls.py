"""A loop of machine code that calls a kernel: the minimal cost of its calls."""

from collections.abc import Callable
from functools import cache

import numpy as np

from bench.program import Array
from bench.timing import Run
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import I32, I64, PTR, Module
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.jit.linking import Kernel, code_of, link
from relax_egraph.lower.jit.machine_code import cached_object
from relax_egraph.lower.jit.object_cache import ObjectCache

_NAME = "calls"


def direct_calls(kernel: Callable[..., None], x: Array, y: Array, count: int) -> Run:
    """A run that calls ``kernel(x, y, extent)`` `count` times in all, back and forth.

    `count` is even; `x` and `y` are overwritten.
    """
    code = code_of(kernel)
    assert code is not None
    words = np.array([code.address, code.pool], np.int64)
    calls = _calls()

    def run(_: Callable[..., None] = kernel) -> None:  # keeps its code alive
        calls(words, x, y, x.size, count // 2)

    return run


@cache
def _calls() -> Kernel:
    target = host()
    module = Module(target)
    f = Function(module, _NAME, (PTR, PTR, PTR, PTR, I64, I64), result=I32)
    _, words, x, y, extent, turns = f.args
    kernel, pool = (f.load(f.address(words, k, PTR), PTR) for k in (0, 1))
    with f.loop(0, turns):
        f.call_pointer(kernel, pool, x, y, extent)
        f.call_pointer(kernel, pool, y, x, extent)
    f.finish(f.const(I32, 0))
    compiled = cached_object(str(module), target, ObjectCache(None))
    info = KernelInfo(_NAME, ("int64", "float32", "float32"), 2, 2)
    return link(CompiledKernels(target, {_NAME: compiled}, {_NAME: info}))[_NAME]
