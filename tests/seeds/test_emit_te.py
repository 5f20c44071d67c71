"""Tensor expressions: as loop functions, and emitted into functions of the graph."""

import numpy as np
import pytest

from relax_egraph import BlockBuilder, IRModule, VirtualMachine, build, optimize, te
from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Var, const
from relax_egraph.ir.struct_info import TensorStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal, structural_equal
from relax_egraph.lower.pipeline import TO_VM
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.tir.block_builder import te_tensor
from relax_egraph.tir.stmt import PrimFunc
from tests.seeds.programs import floats, machines, read

n, m = dims.symbol("n"), dims.symbol("m")
EVEN = dims.mul(2, dims.floordiv(m, 2))

# Corrected: the second buffer is matched to `c`; there is no `b`.
ELEMENT_WISE = """
from tvm.script import tir as T

@T.prim_func
def tir_element_wise(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.match_buffer(c, (128, 128))
    with T.block([128, 128]) as [i, j]:
        B[i, j] = A[i, j] * 2.0
"""


def element_wise() -> PrimFunc:
    a = te.placeholder((128, 128), name="A")
    b = te.compute((128, 128), lambda x, y: a[x, y] * 2, name="B")
    return te.create_prim_func(a, b)


def test_a_tensor_expression_makes_the_loop_function_that_is_written_by_hand() -> None:
    module = read(ELEMENT_WISE)

    assert_structural_equal(element_wise(), module["tir_element_wise"])
    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @T.prim_func
    def tir_element_wise(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32")):
        for i_, j_ in T.grid(128, 128):
            with T.block("block"):
                i, j = T.axis.remap("SS", [i_, j_])
                B[i, j] = A[i, j] * T.float32(2.0)
"""
    )


def test_another_loop_function_is_not_equal_to_it() -> None:
    other = read(ELEMENT_WISE.replace("2.0", "3.0"))

    assert not structural_equal(element_wise(), other["tir_element_wise"])


# --- staging ------------------------------------------------------------------------------


def staged() -> IRModule:
    """The listing: `x + 1`, its double by a tensor expression, a sum by a function of tensors.

    Corrected: `te_func` reads its parameters, not `A` and `B`, and computes their shape: 128 by
    128 is not that of ``x``.  Translated: variables have no operators in Python.
    """

    def te_func(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda i, j: x[i, j] + y[i, j])

    bb = BlockBuilder()
    x = Var("x", tensor((n, m), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(call("add", x, const(1.0)))
            source = te_tensor(a)
            b = bb.emit_output(te.compute((n, m), lambda i, j: source[i, j] * 2, name="B"))
            c = bb.emit_output(bb.call_te(te_func, x, a))
        bb.emit_func_output(bb.emit(call("subtract", b, c)))
    return bb.get()


def test_expressions_over_values_of_the_graph_become_calls_of_loop_functions() -> None:
    module = staged()

    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @T.prim_func
    def B(lv: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        for i0, i1 in T.grid(n, m):
            with T.block("B"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                B[v_i0, v_i1] = lv[v_i0, v_i1] * T.float32(2.0)

    @T.prim_func
    def te_func(
        x: T.Buffer(("n", "m"), "float32"),
        y: T.Buffer(("n", "m"), "float32"),
        compute: T.Buffer(("n", "m"), "float32"),
    ):
        n = T.int64()
        m = T.int64()
        for i0, i1 in T.grid(n, m):
            with T.block("compute"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                compute[v_i0, v_i1] = x[v_i0, v_i1] + y[v_i0, v_i1]

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            lv: R.Tensor((n, m), "float32") = R.add(x, R.const(1.0, "float32"))
            gv: R.Tensor((n, m), "float32") = R.call_tir(
                cls.B, (lv,), out_sinfo=R.Tensor((n, m), "float32")
            )
            gv1: R.Tensor((n, m), "float32") = R.call_tir(
                cls.te_func, (x, lv), out_sinfo=R.Tensor((n, m), "float32")
            )
            R.output(gv, gv1)
        gv2: R.Tensor((n, m), "float32") = R.subtract(gv, gv1)
        return gv2
"""
    )
    assert_structural_equal(read(module.script()), module)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (128, 128)])
def test_what_is_staged_runs(shape: tuple[int, int]) -> None:
    x = floats(*shape)

    for vm in machines(staged()):
        np.testing.assert_allclose(vm["main"](x), (x + 1) * 2 - (x + (x + 1)), atol=1e-5)


def test_a_value_without_a_known_shape_must_be_matched_first() -> None:
    x = Var("x", TensorStructInfo(None, "float32", 2))
    bb = BlockBuilder()

    with bb.function("main", [x]):
        with pytest.raises(IllTyped) as refused:
            te_tensor(x)
        source = te_tensor(bb.emit_match_cast(x, tensor((n, m), "float32")))
        bb.emit_func_output(bb.emit(te.compute((n, m), lambda i, j: source[i, j] * 2)))

    assert str(refused.value) == (
        'te_tensor of R.Tensor(dtype="float32", ndim=2): needs a tensor of known shape and dtype'
    )
    values = floats(2, 3)
    for vm in machines(bb.get()):
        np.testing.assert_array_equal(vm["main"](values), values * 2)


# --- dynamic shapes -----------------------------------------------------------------------


def dynamic() -> IRModule:
    """Corrected: `A` is a tensor of `x`, the listing says `a`.

    Added: a parameter that binds `m`, which no extent of `x` has alone.
    """
    bb = BlockBuilder()
    x, w = Var("x", tensor((n, EVEN), "float32")), Var("w", tensor((m,), "float32"))
    with bb.function("main", [x, w]):
        source = te_tensor(x)
        b = bb.emit(te.compute((n, EVEN), lambda i, j: source[i, j] + 1, name="ewise_fun"))
        bb.emit_func_output(b)
    return bb.get()


def test_a_symbol_that_no_extent_has_alone_becomes_a_parameter() -> None:
    module = dynamic()

    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @T.prim_func
    def ewise_fun(
        x: T.Buffer(("n", "(m // 2) * 2"), "float32"),
        ewise_fun: T.Buffer(("n", "(m // 2) * 2"), "float32"),
        m: T.int64,
    ):
        n = T.int64()
        for i0, i1 in T.grid(n, m // 2 * 2):
            with T.block("ewise_fun"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                ewise_fun[v_i0, v_i1] = x[v_i0, v_i1] + T.float32(1.0)

    @R.function
    def main(
        x: R.Tensor(("n", "(m // 2) * 2"), "float32"),
        w: R.Tensor(("m",), "float32"),
    ) -> R.Tensor(("n", "(m // 2) * 2"), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        gv: R.Tensor((n, (m // 2) * 2), "float32") = R.call_tir(
            cls.ewise_fun,
            (x,),
            out_sinfo=R.Tensor((n, (m // 2) * 2), "float32"),
            tir_vars=R.shape([m]),
        )
        return gv
"""
    )


@pytest.mark.parametrize("size", [0, 1, 4, 7])
def test_the_dynamic_case_runs(size: int) -> None:
    x, w = floats(3, size // 2 * 2), floats(size)

    for vm in machines(dynamic()):
        np.testing.assert_array_equal(vm["main"](x, w), x + 1)


# Corrected in both functions: the parameters are a and b; the block is as large as its buffers,
# without the second factor 2.
BY_MATCH_ALONE = """
@I.ir_module
class Module:
    @T.func
    def ewise_fun(a, b):
        n = tir.var("n")
        m = tir.var("m")
        A = T.match_buffer(a, (n, 2*floordiv(m, 2)))
        B = T.match_buffer(b, (n, 2*floordiv(m, 2)))
        with T.block([n, 2*floordiv(m, 2)]) as [i, j]:
            B[i, j] = A[i, j] * 2.0

    @R.func
    def main(x: R.Tensor[(n, 2*floordiv(m, 2)), "f32"], w: R.Tensor[(m,), "f32"]):
        with R.dataflow():
            B = R.call_tir((n, 2*floordiv(m, 2)), ewise_fun, [x])
            R.outputs(B)
        return B
"""

WITH_A_PARAMETER = """
@I.ir_module
class Module:
    @T.func
    def ewise_fun(a, b, m: T.int64):
        n = tir.var("n")
        A = T.match_buffer(a, (n, 2*floordiv(m, 2)))
        B = T.match_buffer(b, (n, 2*floordiv(m, 2)))
        with T.block([n, 2*floordiv(m, 2)]) as [i, j]:
            B[i, j] = A[i, j] * 2.0

    @R.func
    def main(x: R.Tensor[(n, 2*floordiv(m, 2)), "f32"], w: R.Tensor[(m,), "f32"]):
        with R.dataflow():
            B = R.call_tir_dyn((n, 2*floordiv(m, 2)), ewise_fun, [x], (m,))
            R.outputs(B)
        return B
"""


def test_a_symbol_that_no_buffer_defines_is_refused_where_it_is_not_passed() -> None:
    module = read(BY_MATCH_ALONE)

    with pytest.raises(IllTyped) as refused:
        build(module)

    assert str(refused.value) == (
        "main: R.call_tir of ewise_fun: no operand has a known extent that binds its symbol m"
    )


def test_the_symbol_is_passed_after_the_result() -> None:
    module = read(WITH_A_PARAMETER)

    function = module["ewise_fun"]
    assert isinstance(function, PrimFunc)
    assert function.scalars == ("m",)
    assert (
        module.script().partition("    @R.function\n")[2]
        == """\
    def main(
        x: R.Tensor(("n", "(m // 2) * 2"), "float32"),
        w: R.Tensor(("m",), "float32"),
    ) -> R.Tensor(("n", "(m // 2) * 2"), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            B: R.Tensor((n, (m // 2) * 2), "float32") = R.call_tir(
                cls.ewise_fun,
                (x,),
                out_sinfo=R.Tensor((n, (m // 2) * 2), "float32"),
                tir_vars=R.shape([m]),
            )
            R.output(B)
        return B
"""
    )
    for size in (0, 1, 4, 7):
        x = floats(3, size // 2 * 2)
        for vm in machines(module):
            np.testing.assert_array_equal(vm["main"](x, floats(size)), x * 2)


def test_the_symbols_are_unpacked_into_the_call() -> None:
    """``call fn, r0, *r1``: the shape's extents are operands of their own, after the result."""
    text = codegen(TO_VM(dynamic())).as_text()

    (line,) = (line for line in text.splitlines() if "  ewise_fun  " in line)
    assert line.partition("call  ")[2] == "ewise_fun  in: %0, %4, %3, %2  dst: void  # gv"


def test_a_function_reused_is_in_the_module_once() -> None:
    bb = BlockBuilder()
    x = Var("x", tensor((n, 4), "float32"))

    def doubled(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda i, j: x[i, j] * 2)

    with bb.function("main", [x]):
        with bb.dataflow():
            gv = bb.emit_output(bb.call_te(doubled, bb.emit_te(doubled, x)))
        bb.emit_func_output(gv)

    assert list(bb.get().functions) == ["doubled", "main"]
    values = floats(2, 4)
    result = VirtualMachine(build(optimize(bb.get())))["main"](values)
    np.testing.assert_array_equal(result, values * 4)
