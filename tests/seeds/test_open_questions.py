"""What the documents ask for beyond their listings, and the questions they leave open."""

from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import VirtualMachine, build, optimize, parse
from relax_egraph.errors import ScriptError
from relax_egraph.ir.expr import Function

CROSS_LAYER = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def twice(a: T.Buffer((8, 4), "float32"), b: T.Buffer((8, 4), "float32")):
        for i, j in T.grid(8, 4):
            with T.sblock("twice"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = a[vi, vj] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor((8, 4), "float32"), y: R.Tensor((8, 4), "float32")):
        e = R.exp(x)
        d = R.call_tir(Module.twice, (e,), out_ty=R.Tensor((8, 4), "float32"))
        s = R.add(d, y)
        return s
"""


def test_a_loop_function_is_fused_with_the_operators_around_it() -> None:
    module = parse(CROSS_LAYER)
    x, y = np.random.default_rng(0).standard_normal((2, 8, 4)).astype(np.float32)

    best = optimize(module)

    kernels = [n for n, f in best.relax_functions() if f.attrs.get("primitive")]
    assert kernels == ["fused_exp_ewise_fma"]
    result = VirtualMachine(build(best))["main"](x, y)
    np.testing.assert_allclose(result, 2 * np.exp(x) + y, rtol=1e-6)


def test_the_schedule_and_the_price_of_loops_are_known_to_the_graph() -> None:
    best = optimize(parse(CROSS_LAYER))

    fused = best["fused_exp_ewise_fma"]
    assert isinstance(fused, Function)
    assert fused.attrs["anchor"] == "elementwise"
    assert isinstance(fused.attrs["seconds"], float)


def test_machine_code_can_be_made_where_a_program_is_loaded(tmp_path: Path) -> None:
    module = parse(CROSS_LAYER)
    build(optimize(module), (), portable=True).save(tmp_path / "program.rxe")

    executable = rx.load(tmp_path / "program.rxe")

    ones = np.ones((8, 4), np.float32)
    result = VirtualMachine(executable)["main"](ones, ones)
    np.testing.assert_allclose(result, 2 * np.exp(ones) + 1, rtol=1e-6)


def test_a_program_for_a_gpu_is_refused_and_a_device_is_that_of_the_machine() -> None:
    loops = "for i, j in T.grid(8, 4):"
    threads = 'for i in T.thread_binding(8, "x"):\n         for j in range(4):'
    with pytest.raises(ScriptError, match="this is a compiler for CPUs"):
        parse(CROSS_LAYER.replace(loops, threads))

    module = parse("""
@R.function
def main(x: R.Tensor((2,), "float32", "llvm:0")):
    y = R.to_vdevice(x, "llvm:0")
    return y
""")
    assert 'main(x: R.Tensor((2,), "float32"))' in module.script()
