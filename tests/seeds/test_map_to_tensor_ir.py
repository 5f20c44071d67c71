"""Operators as loops, a fused function as one loop function, and what then runs."""

from dataclasses import replace
from typing import Any

import numpy as np

from relax_egraph import IRModule, VirtualMachine, build, optimize
from relax_egraph.ir.module import BaseFunc
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.lower.fuse_tir import fuse_tir
from relax_egraph.passes import canonicalize_bindings, dead_code_elimination
from relax_egraph.tir.stmt import PrimFunc
from tests.seeds.dense_add_fusion import fuse_dense_add
from tests.seeds.lower_to_tensor_ir import lower_to_tensor_ir
from tests.seeds.mlp import IMAGE, assert_runs, create_model, expected, listing

FUSED_LOOPS = """\
@I.ir_module
class Module:
    @T.prim_func
    def relu(x: T.Buffer((1, 128), "float32"), compute: T.Buffer((1, 128), "float32")):
        for i0, i1 in T.grid(1, 128):
            with T.block("compute"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                compute[v_i0, v_i1] = T.max(x[v_i0, v_i1], T.float32(0.0))

    @T.prim_func
    def fused_dense_add0(
        x: T.Buffer((1, 784), "float32"),
        w: T.Buffer((784, 128), "float32"),
        b: T.Buffer((128,), "float32"),
        T_add: T.Buffer((1, 128), "float32"),
    ):
        T_matmul_NN = T.alloc_buffer((1, 128), "float32")
        for i0, i1, k0 in T.grid(1, 128, 784):
            with T.block("T_matmul_NN"):
                v_i0, v_i1, v_k0 = T.axis.remap("SSR", [i0, i1, k0])
                with T.init():
                    T_matmul_NN[v_i0, v_i1] = T.float32(0.0)
                T_matmul_NN[v_i0, v_i1] = T_matmul_NN[v_i0, v_i1] + x[v_i0, v_k0] * w[v_k0, v_i1]
        for i0, i1 in T.grid(1, 128):
            with T.block("T_add"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T_add[v_i0, v_i1] = T_matmul_NN[v_i0, v_i1] + b[v_i1]

    @T.prim_func
    def fused_dense_add1(
        x: T.Buffer((1, 128), "float32"),
        w: T.Buffer((128, 10), "float32"),
        b: T.Buffer((10,), "float32"),
        T_add: T.Buffer((1, 10), "float32"),
    ):
        T_matmul_NN = T.alloc_buffer((1, 10), "float32")
        for i0, i1, k0 in T.grid(1, 10, 128):
            with T.block("T_matmul_NN"):
                v_i0, v_i1, v_k0 = T.axis.remap("SSR", [i0, i1, k0])
                with T.init():
                    T_matmul_NN[v_i0, v_i1] = T.float32(0.0)
                T_matmul_NN[v_i0, v_i1] = T_matmul_NN[v_i0, v_i1] + x[v_i0, v_k0] * w[v_k0, v_i1]
        for i0, i1 in T.grid(1, 10):
            with T.block("T_add"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T_add[v_i0, v_i1] = T_matmul_NN[v_i0, v_i1] + b[v_i1]

    @R.function
    def main(x: R.Tensor((1, 784), "float32")) -> R.Tensor((1, 10), "float32"):
        cls = Module
        with R.dataflow():
            lv: R.Tensor((784, 128), "float32") = R.permute_dims(metadata["relax.expr.Constant"][0])
            lv2: R.Tensor((1, 128), "float32") = R.call_tir(
                cls.fused_dense_add0,
                (x, lv, metadata["relax.expr.Constant"][1]),
                out_sinfo=R.Tensor((1, 128), "float32"),
            )
            lv3: R.Tensor((1, 128), "float32") = R.call_tir(
                cls.relu, (lv2,), out_sinfo=R.Tensor((1, 128), "float32")
            )
            lv4: R.Tensor((128, 10), "float32") = R.permute_dims(metadata["relax.expr.Constant"][2])
            gv: R.Tensor((1, 10), "float32") = R.call_tir(
                cls.fused_dense_add1,
                (lv3, lv4, metadata["relax.expr.Constant"][3]),
                out_sinfo=R.Tensor((1, 10), "float32"),
            )
            R.output(gv)
        return gv
"""


def bare(module: IRModule) -> IRModule:
    """`module` without the attributes of loop functions: here, that no two buffers overlap is law.

    Corrected: the document's are ``private``, those that `call_te` makes here are not.
    """
    functions: dict[str, BaseFunc] = {
        name: replace(f, attrs={}) if isinstance(f, PrimFunc) else f
        for name, f in module.functions.items()
    }
    return IRModule(functions)


def lowered() -> IRModule:
    return lower_to_tensor_ir(fuse_dense_add(create_model()))


def fused_loops(module: IRModule) -> IRModule:
    """``FuseTIR`` of the document also drops what nothing calls and bindings that only rename."""
    return canonicalize_bindings(dead_code_elimination(["main"])(fuse_tir(module)))


# --- LowerToTensorIR ------------------------------------------------------------------------


def test_the_lowered_model_is_that_of_the_document() -> None:
    module = lowered()

    assert_well_formed(module)
    assert_structural_equal(bare(module), bare(listing("mlp_lowered")))
    assert list(module.functions) == [
        *("matmul", "add", "matmul1", "add1", "relu"),
        *("fused_dense_add0", "fused_dense_add1", "main"),
    ]


def test_the_wrapper_is_a_pass_of_level_0() -> None:
    assert (lower_to_tensor_ir.name, lower_to_tensor_ir.opt_level) == ("LowerToTensorIR", 0)


def test_the_lowered_model_runs() -> None:
    assert_runs(lowered())
    assert_runs(listing("mlp_lowered"))


# --- FuseTIR --------------------------------------------------------------------------------


def test_each_fused_function_is_one_loop_function() -> None:
    module = fused_loops(lowered())

    assert module.script() == FUSED_LOOPS
    assert_well_formed(module)
    assert_structural_equal(bare(module), bare(listing("mlp_fused_loops")))


def test_the_private_loop_functions_of_the_document_are_dropped_by_fusion_itself() -> None:
    module = canonicalize_bindings(fuse_tir(listing("mlp_lowered")))

    assert list(module.functions) == ["relu", "fused_dense_add0", "fused_dense_add1", "main"]
    assert_structural_equal(bare(module), bare(listing("mlp_fused_loops")))


def test_functions_of_operators_are_fused_to_the_same_loops() -> None:
    """`fuse_tir` needs no lowering before it: an operator's loops are its own."""
    module = fuse_tir(fuse_dense_add(create_model()))

    expected = fused_loops(lowered())
    for name in ("fused_dense_add0", "fused_dense_add1"):
        one, other = module[name], expected[name]
        assert isinstance(one, PrimFunc)
        assert isinstance(other, PrimFunc)
        assert loops(one) == loops(other)


def loops(function: PrimFunc) -> Any:
    """The text of the body, with blocks and buffers called as `LowerToTensorIR` calls them."""
    text = bare(IRModule({"f": function})).script()
    for ours, theirs in (("matmul", "T_matmul_NN"), ("add", "T_add")):
        text = text.replace(theirs, ours)
    return text


# --- building -------------------------------------------------------------------------------


def test_the_fused_loops_run() -> None:
    assert_runs(fused_loops(lowered()))
    assert_runs(listing("mlp_fused_loops"))


def test_the_optimized_model_runs_and_gives_what_the_document_way_gives() -> None:
    machines = [
        VirtualMachine(build(m)) for m in (optimize(create_model()), fused_loops(lowered()))
    ]

    ours, theirs = (vm["main"](IMAGE) for vm in machines)

    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours, expected(), rtol=1e-4, atol=1e-5)
