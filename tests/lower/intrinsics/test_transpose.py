"""The transposes in registers: every shape of block, for every size of element, on every target."""

import re

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.lower.emit.module_text import Module
from relax_egraph.lower.emit.target import Target, host
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.intrinsics.transpose import TRANSPOSES
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.jit.machine_code import assembly
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.stmt import PrimFunc
from tests.support.kernels import TARGETS, assert_untouched, guarded, sample

N, M = dims.symbol("n"), dims.symbol("m")

SHAPES = [
    *[(0, 3), (1, 1), (2, 15), (3, 100), (100, 3), (16, 16), (17, 16), (15, 17)],
    *[(63, 65), (64, 64), (31, 257), (257, 31), (512, 48)],
]


def transpose_of(dtype: str) -> PrimFunc:
    x = te.placeholder((2, N, M), dtype, name="x")
    return te.create_prim_func(x, te.compute((2, M, N), lambda *i: x[i[0], i[2], i[1]], "out"))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16", "float32", "int32", "float64"])
def test_blocks_of_every_shape_are_transposed(dtype: str, target: Target) -> None:
    scheduled = schedule(transpose_of(dtype))
    kernel = link(compile_kernels({"f": scheduled}, target, INTRINSICS))["f"]
    for n, m in SHAPES:
        x, out = sample((2, n, m), dtype), guarded((2, m, n), dtype)

        kernel(x, out, *({"n": n, "m": m}[s] for s in scheduled.symbols))

        np.testing.assert_array_equal(out, x.transpose(0, 2, 1))
        assert_untouched(out)


@pytest.mark.skipif(host().vector_bits < 512, reason="needs 32 registers")
@pytest.mark.parametrize("name", TRANSPOSES)
def test_a_tile_stays_in_registers(name: str) -> None:
    module = Module(host())
    TRANSPOSES[name](module, host())

    code = assembly(str(module), host())

    assert not re.search(r"zmm\d+, \S*\((%rsp|%rbp)", code)


def test_a_part_of_the_last_axis_is_not_read_in_runs() -> None:
    x = te.placeholder((N, M, 2), "float32", name="x")
    part = te.compute((M, N, 1), lambda *i: x[i[1], i[0], i[2]], "out")
    scheduled = schedule(te.create_prim_func(x, part))
    kernel = link(compile_kernels({"f": scheduled}, host(), INTRINSICS))["f"]
    given, out = sample((20, 33, 2), "float32"), guarded((33, 20, 1), "float32")

    kernel(given, out, *({"n": 20, "m": 33}[s] for s in scheduled.symbols))

    np.testing.assert_array_equal(out[..., 0], given[..., 0].T)
    assert_untouched(out)
