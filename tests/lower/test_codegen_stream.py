"""Large results are written past the caches, inputs are fetched ahead; the results are the same."""

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.lower.codegen.stream import LARGE
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import compile_kernels, link, llvm_text
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.stmt import PrimFunc
from tests.support.kernels import TARGETS

N = dims.symbol("n")

COUNT = LARGE // 4


def exponentials(size: dims.Dim) -> PrimFunc:
    x = te.placeholder((size,), name="x")
    return te.create_prim_func(x, te.compute((size,), lambda i: te.exp(x[i]), "out"))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("bytes_off", [0, 4, 16, 32])
@pytest.mark.parametrize("count", [100, COUNT - 1, COUNT, COUNT + 17])
def test_the_result_is_the_same_wherever_it_lies(
    count: int, bytes_off: int, target: Target
) -> None:
    kernel = link(compile_kernels({"f": schedule(exponentials(N))}, target))["f"]
    x = np.linspace(-1, 1, count, dtype=np.float32)
    memory = np.full(count + 64, 7, np.float32)
    start = 16 + (-memory.ctypes.data % 64 + bytes_off) // 4
    out = memory[start : start + count]

    kernel(x, out, count)

    np.testing.assert_allclose(out, np.exp(x), rtol=3e-7)
    assert (memory[:start] == 7).all()
    assert (memory[start + count :] == 7).all()


def test_only_what_may_be_large_is_written_past_the_caches() -> None:
    small, large = (llvm_text(schedule(exponentials(n))) for n in (COUNT // 2, COUNT))

    assert "!nontemporal" not in small
    assert "!nontemporal" in large
    assert "fence seq_cst" in large


def test_reads_are_fetched_ahead_where_much_is_computed_between_them() -> None:
    x = te.placeholder((N,), name="x")
    cheap = te.create_prim_func(x, te.compute((N,), lambda i: x[i] + 1.0, "out"))

    assert "@llvm.prefetch.p0(ptr %" in llvm_text(schedule(exponentials(N)))
    assert "prefetch" not in llvm_text(schedule(cheap))
