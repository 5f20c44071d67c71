"""Micro-kernels that take three arrays of floats, as functions, and runs of them."""

from collections.abc import Callable, Sequence

from relax_egraph.ir import dims
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.tir.expr import Buffer, DimSymbol, Imm
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.support.guarded import guarded


def tile_function(name: str, scalars: Sequence[str]) -> PrimFunc:
    """A call of the micro-kernel `name` on three arrays, of sizes ``a``, ``b`` and ``c``."""
    zero = Imm(0, "int64")
    sizes = map(dims.symbol, "abc")
    buffers = tuple(Buffer(n, (size,), "float32") for n, size in zip("xwy", sizes, strict=True))
    symbols = tuple(DimSymbol(scalar) for scalar in scalars)
    call = TensorIntrinsic(name, tuple((b, (zero,)) for b in buffers), symbols)
    return PrimFunc(buffers, call, scalars=tuple(scalars))


def guarded_tile(function: PrimFunc, target: Target) -> Callable[..., None]:
    """`function` for `target`, on arrays between pages that nothing may touch."""
    compiled = compile_kernels({"kernel": function}, target, INTRINSICS)
    return guarded("kernel", link(compiled)["kernel"], compiled.kernels["kernel"])
