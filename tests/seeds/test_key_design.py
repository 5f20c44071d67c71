"""The key design points: dataflow blocks, shapes as values, calls of what is below the graph."""

import numpy as np
import pytest

from relax_egraph import BlockBuilder, parse
from relax_egraph.errors import ScriptError
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call_packed
from relax_egraph.ir.expr import Call, DataflowVar, ExternFunc, Function, Tuple, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import ObjectStructInfo, TensorStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.walk import bindings_of
from tests.seeds.programs import Array, floats, machines, read

# Corrected in both: `call_tir(lv2, …, [lv3])` has the shape and the tensor in each other's place.
MODULE_2022 = """
import tvm.script
from tvm.script import tir as T, relax as R

@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tir_exp_func(x: T.handle, y: T.handle): ## <= D2
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        with T.grid(n) as i:
            Y[i] = T.exp(X[i])

    @R.function
    def relax_func(x: R.Tensor[(n, k), "f32"], w: R.Tensor[_, "f32"]):
        with R.dataflow(): ### <= D0
            lv0 = R.match_shape(w, (k, m)) ## <= D1
            lv1: R.Tensor[(n, m), "f32"] = R.dot(x, lv0)
            lv2: R.Tensor[(n * m,), "f32"] = R.flatten(lv1) ## <= D1
            lv3: R.Shape = (n * m,)  ## <= D1
            gv0: R.Tensor[lv3, "f32"] = R.call_tir(lv3, tir_exp_func, [lv2])   ## <= D2
            R.outputs(gv0)

        R.call_packed("custom_inplace_update", gv0)  ## <= D0, D2
        return gv0
"""

MODULE_2021 = """
import tvm.script
from tvm.script import tir as T, relax as R

@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tir_exp_func(x: T.handle, y: T.handle): ## <= D2
        n = T.var("n")
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        with T.grid(n) as i:
            Y[i] = T.exp(X[i])

    @R.func
    def relax_func(x: R.Tensor[(n, k), "f32"], w: R.Tensor[_, "f32"]):
        with R.dataflow(): ### <= D0
            lv0 = R.match_shape(w, (k, m)) ## <= D1
            lv1: R.Tensor[(n, m), "f32"] = R.dot(x, lv0)
            lv2: R.Tensor[(n * m,), "f32"] = R.flatten(lv1) ## <= D1
            lv3: R.Shape = (n * m,)  ## <= D1
            gv0: R.Tensor[lv3, "f32"] = R.call_dps(lv3, tir_exp_func, [lv2])   ## <= D2
            R.outputs(gv0)

        R.call_packed("custom_inplace_update", gv0)  ## <= D0, D2
        return gv0
"""

MODULE_TODAY = """\
@I.ir_module
class Module:
    @T.prim_func
    def tir_exp_func(X: T.Buffer(("n",), "float32"), Y: T.Buffer(("n",), "float32")):
        n = T.int64()
        for i in T.serial(n):
            Y[i] = T.exp(X[i])

    @R.function(pure=False)
    def relax_func(
        x: R.Tensor(("n", "k"), "float32"),
        w: R.Tensor(dtype="float32"),
    ) -> R.Tensor(("m * n",), "float32"):
        n = T.int64()
        k = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            lv0: R.Tensor((k, m), "float32") = R.match_cast(w, R.Tensor((k, m), "float32"))
            lv1: R.Tensor((n, m), "float32") = R.matmul(x, lv0)
            lv2: R.Tensor((m * n,), "float32") = R.flatten(lv1)
            lv3: R.Shape((m * n,)) = R.shape([m * n])
            gv0: R.Tensor((m * n,), "float32") = R.call_tir(
                cls.tir_exp_func, (lv2,), out_sinfo=R.Tensor((m * n,), "float32")
            )
            R.output(gv0)
        _: R.Object = R.call_packed("custom_inplace_update", gv0)
        return gv0
"""

BOTH = pytest.mark.parametrize("text", [MODULE_2022, MODULE_2021], ids=["2022", "2021"])


@BOTH
def test_the_module_prints_in_todays_form(text: str) -> None:
    module = read(text)

    assert module.script() == MODULE_TODAY


@BOTH
@pytest.mark.parametrize(("n", "k", "m"), [(2, 3, 4), (1, 1, 1), (0, 5, 3), (17, 64, 9)])
def test_the_module_runs_and_the_update_is_made_in_place(text: str, n: int, k: int, m: int) -> None:
    def update(x: Array) -> None:
        x *= 2

    x, w = floats(n, k), floats(k, m)
    expected = np.exp((x @ w).reshape(-1)) * 2

    results = [
        vm["relax_func"](x, w) for vm in machines(read(text), {"custom_inplace_update": update})
    ]

    for result in results:
        np.testing.assert_allclose(result, expected, rtol=1e-4)


def test_variables_of_the_block_are_local_but_for_its_outputs() -> None:
    function = read(MODULE_2021)["relax_func"]
    assert isinstance(function, Function)

    kinds = {b.var.name: type(b.var) for b in bindings_of(function.body)}

    local = dict.fromkeys(["lv0", "lv1", "lv2", "lv3"], DataflowVar)
    assert kinds == {**local, "gv0": Var, "_": Var}


def test_a_local_variable_is_not_seen_outside_of_its_block() -> None:
    with pytest.raises(ScriptError) as refused:
        parse(MODULE_2021.replace("return gv0", "return lv1"))

    assert refused.value.message == "lv1 is visible only in its dataflow block"


# --- destination passing ------------------------------------------------------------------

DPS = """
@I.ir_module
class Module:
    @T.prim_func
    def func(x: T.Buffer((), "int32"), result: T.Buffer((), "int32")):
        result[()] = 1

    @R.function
    def main(x: R.Tensor[(), "i32"]):
        with R.dataflow():
            gv0: R.Tensor[(), "i32"] = R.call_tir((), func, [x])
            R.outputs(gv0)
        return gv0
"""


def test_a_result_comes_back_through_an_argument_or_as_a_value() -> None:
    """The two C functions: `func` writes ``1`` to `result`, its call returns it."""
    module = read(DPS)

    results = [vm["main"](np.array(7, np.int32)) for vm in machines(module)]

    assert results == [np.array(1, np.int32)] * 2


def test_call_tir_allocates_the_result_calls_the_function_and_returns_it() -> None:
    seen: list[tuple[int, ...]] = []

    def lowlevel_func(x: Array, y: Array, out: Array) -> None:
        seen.append(out.shape)
        np.subtract(x, y, out=out)

    module = read("""
@R.function
def main(x: R.Tensor[(n, m), "f32"], y: R.Tensor[(n, m), "f32"]):
    with R.dataflow():
        gv0 = R.call_tir((n, m), "lowlevel_func", [x, y])
        R.outputs(gv0)
    return gv0
""")
    x, y = floats(2, 3), np.ones((2, 3), np.float32)

    results = [vm["main"](x, y) for vm in machines(module, {"lowlevel_func": lowlevel_func})]

    np.testing.assert_array_equal(results, [x - y, x - y])
    assert seen == [(2, 3), (2, 3)]


def test_a_function_below_the_graph_takes_inputs_then_outputs() -> None:
    def split(x: Array, y: Array, low: Array, high: Array) -> None:
        np.minimum(x, y, out=low)
        np.maximum(x, y, out=high)

    module = read("""
@R.func
def main(x: R.Tensor[(n,), "f32"], y: R.Tensor[(n,), "f32"]):
    with R.dataflow():
        gv0 = R.call_dps(((n,), (n,)), "fn", [x, y])
        R.outputs(gv0)
    return gv0
""")
    x, y = np.array([1, 5], np.float32), np.array([3, 2], np.float32)

    results = [vm["main"](x, y) for vm in machines(module, {"fn": split})]

    for low, high in results:
        np.testing.assert_array_equal(low, [1, 2])
        np.testing.assert_array_equal(high, [3, 5])


# Corrected: the listing calls "custom_func", the tree beside it shows "my_packed_func".
OPAQUE_SHAPE = """
@R.func
def main(lv1: R.Tensor[(n,), "f32"], lv3: R.Shape):
    with R.dataflow():
        lv4: R.Tensor[lv3, "f32"] = R.call_dps(lv3, "my_packed_func", [lv1])
        R.outputs(lv4)
    return lv4
"""


def test_call_dps_is_a_call_of_an_operator() -> None:
    function = read(OPAQUE_SHAPE)["main"]
    assert isinstance(function, Function)

    (binding,) = bindings_of(function.body)

    lv1, lv3 = function.params
    value = binding.value
    assert isinstance(value, Call)
    packed, operands = value.args
    assert value.op is OPS["call_dps_packed"]
    assert packed == ExternFunc("my_packed_func")
    assert isinstance(operands, Tuple)
    assert operands.fields == (lv1,)
    assert value.sinfo_args == (TensorStructInfo(lv3, "float32"),)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 3, 2)])
def test_the_shape_of_a_result_may_be_an_opaque_value(shape: tuple[int, ...]) -> None:
    x = floats(6)

    def fill(x: Array, out: Array) -> None:
        out[...] = x.reshape(out.shape)

    vms = machines(read(OPAQUE_SHAPE), {"my_packed_func": fill})
    results = [vm["main"](x, shape) for vm in vms]

    np.testing.assert_array_equal(results, [x.reshape(shape)] * 2)


def test_call_packed_is_a_call_of_an_extern_function() -> None:
    bb = BlockBuilder()
    x, y = Var("x", tensor((2,), "float32")), Var("y")
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(call_packed("my_packed_func", [x, y], ())))

    module = read("""
@R.func
def main(x: R.Tensor[(2,), "f32"], y: R.Object):
    gv = R.call_packed("my_packed_func", x, y)
    return gv
""")

    assert_structural_equal(module, bb.get())
    function = module["main"]
    assert isinstance(function, Function)
    (binding,) = bindings_of(function.body)
    assert isinstance(binding.value, Call)
    assert binding.value.args == (ExternFunc("my_packed_func"), *function.params)


# --- objects, and what is written instead of names ------------------------------------------


def test_an_object_becomes_a_tensor_by_a_check_at_run_time() -> None:
    def draw(_: object) -> Array:
        return floats(3)

    module = read("""
@R.func
def main(state: R.Object):
    n = T.int64()
    x = R.call_packed("draw", state)
    y = R.match_cast(x, R.Tensor((n,), "float32"))
    z = R.exp(y)
    return z
""")

    results = [vm["main"](object()) for vm in machines(module, {"draw": draw})]

    function = module["main"]
    assert isinstance(function, Function)
    infos = [b.var.struct_info for b in bindings_of(function.body)]
    assert infos == [ObjectStructInfo(), *[tensor((dims.symbol("n"),), "float32")] * 2]
    for result in results:
        np.testing.assert_allclose(result, np.exp(floats(3)), rtol=1e-6)


UNDECLARED = """
from tvm.script import relax as R

@R.func
def fn(x: R.Tensor[(n, m), "f32"]):
    y: R.Tensor[(n, m), "f32"] = x + 1
    return y
"""

QUOTED = """
from tvm.script import relax as R

@R.func
def fn(x: R.Tensor["(n, m)", "f32"]):
    n, m = R.shape_vars("n", "m")
    y: R.Tensor[(n, m), "f32"] = x + 1
    return y
"""


@pytest.mark.parametrize("text", [UNDECLARED, QUOTED], ids=["undeclared", "quoted"])
def test_symbols_of_a_signature_may_be_undeclared_or_quoted(text: str) -> None:
    module = read(text)

    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @R.function
    def fn(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n = T.int64()
        m = T.int64()
        y: R.Tensor((n, m), "float32") = R.add(x, R.const(1.0, "float32"))
        return y
"""
    )
    x = floats(2, 3)
    for vm in machines(module):
        np.testing.assert_array_equal(vm["fn"](x), x + 1)


def test_expressions_of_symbols_are_compared_by_proof() -> None:
    n = dims.symbol("n")

    assert dims.equal(dims.mul(n, 4), dims.mul(4, n))
    assert dims.add(dims.mul(2, 3), 1) == 7
