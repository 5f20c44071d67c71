"""The module of the compilation chapter, lowered pass by pass to what the machine knows."""

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import RunError
from relax_egraph.ir.expr import DataflowBlock, Function, SeqExpr
from relax_egraph.ir.module import IRModule
from relax_egraph.lower.pipeline import TO_VM
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.passes.attach_global_symbol import attach_global_symbol
from relax_egraph.passes.call_tir_rewrite import call_tir_rewrite
from relax_egraph.passes.to_non_dataflow import to_non_dataflow
from relax_egraph.passes.vm_memory_lower import vm_memory_lower
from relax_egraph.passes.vm_shape_lower import vm_shape_lower
from relax_egraph.vm import ExecBuilder
from tests.seeds.programs import Array, flatten, floats, machines, read

# Corrected: the parameters are a and b, the buffers are matched to x and y.
SOURCE = """
import tvm.script
from tvm.script import tir as T, relax as R

@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tirexp(x: ty.handle, y: ty.handle):
        n1, m1 = T.var("n1"), T.var("m1")
\t\tX = T.match_buffer(x, (n1, m1))
\t\tY = T.match_buffer(y, (n1, m1))
\t\twith T.block(n1, m1) as i, j:
\t\t    Y[i, j] = T.exp(X[i, j])
    @R.function
    def myfunc(x: Tensor[(n, m)]):
        with R.dataflow():
\t\t    lv0: Tensor[(n, m)] = R.call_tir((n, m), tirexp, [x])
\t\t    gv0: Tensor[(m*n,)] = R.call_tir((m*n,), "flatten", [lv0])
\t\t    R.outputs(gv0)
        return gv0
"""

TIREXP = """\
@I.ir_module
class Module:
    @T.prim_func
    def tirexp(X: T.Buffer(("n1", "m1"), "float32"), Y: T.Buffer(("n1", "m1"), "float32")):
        n1 = T.int64()
        m1 = T.int64()
        for i_, j_ in T.grid(n1, m1):
            with T.block("block"):
                i, j = T.axis.remap("SS", [i_, j_])
                Y[i, j] = T.exp(X[i, j])

"""


def test_the_module_prints_in_todays_form() -> None:
    module = read(SOURCE)

    assert (
        module.script()
        == TIREXP
        + """\
    @R.function
    def myfunc(x: R.Tensor(("n", "m"))) -> R.Tensor(("m * n",), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            lv0: R.Tensor((n, m), "float32") = R.call_tir(
                cls.tirexp, (x,), out_sinfo=R.Tensor((n, m), "float32")
            )
            gv0: R.Tensor((m * n,), "float32") = R.call_dps_packed(
                "flatten", (lv0,), out_sinfo=R.Tensor((m * n,), "float32")
            )
            R.output(gv0)
        return gv0
"""
    )


def test_the_dtype_that_only_the_loop_function_says_is_checked() -> None:
    expected = (
        'myfunc: match_cast x1: expected R.Tensor((n, m), "float32"), '
        'got R.Tensor((2, 3), "float64")'
    )

    for vm in machines(read(SOURCE), {"flatten": flatten}):
        with pytest.raises(RunError) as refused:
            vm["myfunc"](np.zeros((2, 3)))

        assert str(refused.value) == expected


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 4), (17, 33)])
def test_the_module_runs(shape: tuple[int, int]) -> None:
    x = floats(*shape)

    results = [vm["myfunc"](x) for vm in machines(read(SOURCE), {"flatten": flatten})]

    for result in results:
        np.testing.assert_allclose(result, np.exp(x).reshape(-1), rtol=1e-6)


# --- the four passes ----------------------------------------------------------------------


def test_blocks_take_effects_first() -> None:
    module = to_non_dataflow(read(SOURCE))

    function = module["myfunc"]
    assert isinstance(function, Function)
    assert isinstance(function.body, SeqExpr)
    assert not any(isinstance(b, DataflowBlock) for b in function.body.blocks)


def with_memory() -> IRModule:
    return vm_memory_lower(call_tir_rewrite(to_non_dataflow(read(SOURCE))))


def test_calls_then_write_into_memory_that_is_allocated_for_them() -> None:
    module = call_tir_rewrite(to_non_dataflow(read(SOURCE)))

    assert (
        module.script()
        == TIREXP
        + """\
    @R.function(pure=False)
    def myfunc(x: R.Tensor(("n", "m"))) -> R.Tensor(("m * n",), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        lv0: R.Tensor((n, m), "float32") = R.builtin.alloc_tensor(R.shape([n, m]), R.str("float32"))
        x1: R.Tensor((n, m), "float32") = R.match_cast(x, R.Tensor((n, m), "float32"))
        _: R.Tuple() = cls.tirexp(
            x1, lv0, R.prim_value(n), R.prim_value(m), sinfo_args=(R.Tuple(),)
        )
        gv0: R.Tensor((m * n,), "float32") = R.builtin.alloc_tensor(
            R.shape([m * n]), R.str("float32")
        )
        _1: R.Tuple() = R.call_packed("flatten", lv0, gv0, sinfo_args=(R.Tuple(),))
        return gv0
"""
    )


def test_tensors_then_lie_in_storages() -> None:
    module = with_memory()

    assert (
        module.script()
        == TIREXP
        + """\
    @R.function(pure=False)
    def myfunc(x: R.Tensor(("n", "m"))) -> R.Tensor(("m * n",), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        storage: R.Object = R.memory.alloc_storage(R.prim_value(m * n * 4))
        lv0: R.Tensor((n, m), "float32") = R.memory.alloc_tensor(
            storage, R.prim_value(0), R.shape([n, m]), R.str("float32")
        )
        x1: R.Tensor((n, m), "float32") = R.match_cast(x, R.Tensor((n, m), "float32"))
        _: R.Tuple() = cls.tirexp(
            x1, lv0, R.prim_value(n), R.prim_value(m), sinfo_args=(R.Tuple(),)
        )
        storage1: R.Object = R.memory.alloc_storage(R.prim_value(m * n * 4))
        gv0: R.Tensor((m * n,), "float32") = R.memory.alloc_tensor(
            storage1, R.prim_value(0), R.shape([m * n]), R.str("float32")
        )
        _1: R.Tuple() = R.call_packed("flatten", lv0, gv0, sinfo_args=(R.Tuple(),))
        return gv0
"""
    )


def test_symbols_then_become_slots_of_a_heap() -> None:
    module = vm_shape_lower(with_memory())

    assert (
        module.script()
        == TIREXP
        + """\
    @R.function(pure=False)
    def myfunc(x: R.Tensor(("n", "m"))) -> R.Tensor(("m * n",), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        shape_heap: R.Object = R.vm.alloc_shape_heap(R.prim_value(4))
        _2: R.Tuple() = R.vm.check_tensor_info(
            x, R.str("myfunc: parameter x"), R.str("R.Tensor((n, m))"), R.prim_value(2), R.str("")
        )
        _3: R.Tuple() = R.vm.match_shape(
            x,
            shape_heap,
            R.str("myfunc: parameter x"),
            R.str("R.Tensor((n, m))"),
            R.str("n -> @0"),
            R.str("m -> @1"),
        )
        _4: R.Tuple() = R.vm.compute_shapes(
            shape_heap, R.prim_value(2), R.str("@0 * @1 * 4"), R.prim_value(3), R.str("@0 * @1")
        )
        dim: R.Prim("int64") = R.vm.load_prim(shape_heap, R.prim_value(2))
        storage: R.Object = R.memory.alloc_storage(dim)
        shape: R.Shape(ndim=2) = R.vm.make_shape(shape_heap, R.str("@0"), R.str("@1"))
        lv0: R.Tensor(dtype="float32", ndim=2) = R.memory.alloc_tensor(
            storage, R.prim_value(0), shape, R.str("float32")
        )
        _5: R.Tuple() = R.vm.check_tensor_info(
            x,
            R.str("myfunc: match_cast x1"),
            R.str('R.Tensor((n, m), "float32")'),
            R.prim_value(2),
            R.str("float32"),
        )
        _6: R.Tuple() = R.vm.match_shape(
            x,
            shape_heap,
            R.str("myfunc: match_cast x1"),
            R.str('R.Tensor((n, m), "float32")'),
            R.str("n == @0"),
            R.str("m == @1"),
        )
        x1: R.Tensor(dtype="float32", ndim=2) = x
        dim1: R.Prim("int64") = R.vm.load_prim(shape_heap, R.prim_value(0))
        dim2: R.Prim("int64") = R.vm.load_prim(shape_heap, R.prim_value(1))
        _: R.Tuple() = cls.tirexp(x1, lv0, dim1, dim2, sinfo_args=(R.Tuple(),))
        storage1: R.Object = R.memory.alloc_storage(dim)
        shape1: R.Shape(ndim=1) = R.vm.make_shape(shape_heap, R.str("@3"))
        gv0: R.Tensor(dtype="float32", ndim=1) = R.memory.alloc_tensor(
            storage1, R.prim_value(0), shape1, R.str("float32")
        )
        _1: R.Tuple() = R.call_packed("flatten", lv0, gv0, sinfo_args=(R.Tuple(),))
        return gv0
"""
    )


def test_the_build_runs_the_passes_in_this_order() -> None:
    names = [step.name for step in TO_VM.passes]

    assert names == [
        "to_non_dataflow",
        "call_tir_rewrite",
        "static_plan_block_memory",
        "vm_memory_lower",
        "kill_after_last_use",
        "vm_shape_lower",
        "attach_global_symbol",
    ]
    lowered = vm_shape_lower(with_memory())
    assert TO_VM(read(SOURCE)).script() == attach_global_symbol(lowered).script()


def test_what_is_lowered_becomes_instructions() -> None:
    executable = codegen(vm_shape_lower(with_memory()))

    assert executable.packed_names == (
        "vm.builtin.alloc_shape_heap",
        "vm.builtin.check_tensor_info",
        "vm.builtin.match_shape",
        "vm.builtin.compute_shapes",
        "vm.builtin.load_prim",
        "vm.builtin.alloc_storage",
        "vm.builtin.make_shape",
        "vm.builtin.alloc_tensor",
        "tirexp",
        "flatten",
    )


# --- the lowered programs, as they are written in the chapter ---------------------------------

# Corrected: two calls are closed before their operands; a positional operand after keywords.
# Translated: sizes are bytes, `device` is the host, storages and tensors are freed by one builtin.
IN_MEMORY = """
@R.func
def myfunc(x):
    n, m = R.match_shape(x.shape)

    storage0 = relax.vm.builtin.alloc_storage(R.prim_value(n * m * 4))
    tensor0 = relax.vm.builtin.alloc_tensor(storage0, 0, (n, m), "float32")
    R.call_packed("tirexp", x, tensor0)

    storage1 = relax.vm.builtin.alloc_storage(R.prim_value(n * m * 4))
    tensor1 = relax.vm.builtin.alloc_tensor(storage1, 0, (m * n,), "float32")
    R.call_packed("flatten", tensor0, tensor1)

    R.call_packed("vm.builtin.kill", tensor0)
    R.call_packed("vm.builtin.kill", storage0)
    return tensor1
"""

# Corrected besides: `heap` is `shape_heap`; the flat tensor has the shape (n * m,), not (n, m).
# Translated: `product_shape` is the builtin that computes a slot from others.
ON_THE_HEAP = """
@R.func
def myfunc(x):
    shape_heap = R.call_packed("vm.builtin.alloc_shape_heap", 4)
    R.call_packed("vm.builtin.store_shape", x.shape, shape_heap, 0, 1)
    sh = R.call_packed("vm.builtin.load_shape", shape_heap, 0, 1, sinfo_args=R.Shape(ndim=2))
    R.call_packed("vm.builtin.compute_shapes", shape_heap, 2, "@0 * @1 * 4")
    shape_size = R.vm.load_prim(shape_heap, 2)

    storage0 = relax.vm.builtin.alloc_storage(shape_size)
    gv0 = relax.vm.builtin.alloc_tensor(storage0, 0, sh, "float32")
    R.call_packed("tirexp", x, gv0)

    R.call_packed("vm.builtin.compute_shapes", shape_heap, 3, "@0 * @1")
    sh1 = R.call_packed("vm.builtin.load_shape", shape_heap, 3, sinfo_args=R.Shape(ndim=1))
    storage1 = relax.vm.builtin.alloc_storage(shape_size)
    gv1 = relax.vm.builtin.alloc_tensor(storage1, 0, sh1, "float32")
    R.call_packed("flatten", gv0, gv1)

    R.call_packed("vm.builtin.kill", gv0)
    R.call_packed("vm.builtin.kill", storage0)
    return gv1
"""


def tirexp(x: Array, out: Array) -> None:
    np.exp(x, out=out)


@pytest.mark.parametrize("text", [IN_MEMORY, ON_THE_HEAP], ids=["in memory", "on the heap"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 4)])
def test_the_lowered_programs_run(text: str, shape: tuple[int, int]) -> None:
    x = floats(*shape)

    results = [
        vm["myfunc"](x) for vm in machines(read(text), {"tirexp": tirexp, "flatten": flatten})
    ]

    for result in results:
        np.testing.assert_allclose(result, np.exp(x).reshape(-1), rtol=1e-6)


def test_the_builtins_of_memory() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), 64], dst=ib.r(0))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(0), 0, (2, 3), "float32"], dst=ib.r(1))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(0), 24, (2,), "int8"], dst=ib.r(2))
        ib.emit_call("vm.builtin.kill", [ib.r(0)], dst=ib.r(0))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))

    storage, first, second = VirtualMachine(ib.get())["main"]()

    assert storage is None
    assert [(t.shape, t.dtype.name) for t in (first, second)] == [
        ((2, 3), "float32"),
        ((2,), "int8"),
    ]
    assert second.ctypes.data - first.ctypes.data == 24


def test_the_builtins_of_shapes() -> None:
    ib = ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("vm.builtin.alloc_shape_heap", [3], dst=ib.r(1))
        ib.emit_call("vm.builtin.store_shape", [ib.r(0), ib.r(1), 2, 0])
        ib.emit_call("vm.builtin.load_shape", [ib.r(1), 0, 1, 2, 2], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    shape = VirtualMachine(ib.get())["main"]((5, 7))

    assert shape == (7, 0, 5, 5)


def test_a_shape_is_computed_from_another_on_the_heap() -> None:
    """``(j, k) = (m + 1, n + 1)``: `m` and `n` in slots 0 and 1, `j` and `k` in 2 and 3."""
    module = read("""
@R.func
def main(a: R.Tensor[(m, n), "f32"]):
    jk: R.Shape = (m + 1, n + 1)
    return jk
""")

    text = codegen(TO_VM(module)).as_text()

    assert [line[7:] for line in text.splitlines()[3:]] == [
        "call  vm.builtin.match_shape  in: %0, %1, c[0]='main: parameter a', "
        "c[1]='R.Tensor((m, n), \"float32\")', c[3]='m -> @0', c[4]='n -> @1'  dst: void",
        "call  vm.builtin.compute_shapes  in: %1, i2, c[5]='@0 + 1', i3, c[6]='@1 + 1'  dst: void",
        "call  vm.builtin.make_shape  in: %1, c[7]='@2', c[8]='@3'  dst: %1  # shape",
        "ret   %1",
    ]
    assert VirtualMachine(build(module))["main"](floats(2, 5)) == (3, 6)
