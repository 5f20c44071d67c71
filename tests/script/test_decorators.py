"""Scripts that stand in this file: what the decorators make of them."""

# ruff: noqa: N803, N805  # methods of a module have no self, buffers are named by capitals
# annotations of scripts are no types of Python:
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from typing import Any

import numpy as np
import pytest

from relax_egraph.ir import IRModule
from relax_egraph.ir.expr import Call, Constant, Function
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.script import ir as I  # noqa: N812  # the name that scripts say
from relax_egraph.script import parse
from relax_egraph.script import relax as R  # noqa: N812
from relax_egraph.script import tir as T  # noqa: N812
from relax_egraph.tir.stmt import PrimFunc

WEIGHT = np.arange(16, dtype=np.float32).reshape(4, 4)
WIDTH = 4
EXACT = {"scale": 0.5}
n = T.int64()


@T.prim_func(private=True)
def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")) -> None:
    for i in T.parallel(n):
        B[i] = A[i] * 2.0


@I.ir_module
class Model:
    @T.prim_func
    def half(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")) -> None:
        for i in range(n):
            B[i] = A[i] * EXACT["scale"]

    @R.function
    def main(x: R.Tensor((n, WIDTH), "float32")) -> R.Tensor((n * WIDTH,), "float32"):
        cls = Model
        with R.dataflow():
            y = R.matmul(x, WEIGHT)
            z = R.flatten(R.multiply(y, EXACT["scale"] * 4))
            lv = R.call_tir(cls.half, (z,), out_sinfo=R.Tensor((n * WIDTH,), "float32"))
            gv = R.call_tir(double, (lv,), out_sinfo=R.Tensor((n * WIDTH,), "float32"))
            R.output(gv)
        return gv


EXPECTED = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        for i in T.parallel(n):
            B[i] = A[i] * 2.0

    @T.prim_func
    def half(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        for i in range(n):
            B[i] = A[i] * 0.5

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
        with R.dataflow():
            y = R.matmul(x, metadata["relax.expr.Constant"][0])
            z = R.flatten(R.multiply(y, 2.0))
            lv = R.call_tir(cls.half, (z,), out_sinfo=R.Tensor((n * 4,), "float32"))
            gv = R.call_tir(cls.double, (lv,), out_sinfo=R.Tensor((n * 4,), "float32"))
            R.output(gv)
        return gv
"""


def test_a_class_is_read_as_the_text_that_it_stands_for() -> None:
    assert isinstance(Model, IRModule)

    assert_structural_equal(Model, parse(EXPECTED, constants=[WEIGHT]))


def test_a_function_is_read_by_itself() -> None:
    assert isinstance(double, PrimFunc)

    assert_structural_equal(IRModule({"double": double}), IRModule({"double": Model["double"]}))


def scaled(by: float, shape: tuple[int, ...]) -> Function:
    @R.function(private=True)
    def f(x: R.Tensor(shape, "float32")) -> R.Tensor(shape, "float32"):
        y = R.multiply(x, by)
        return y

    return f


def test_a_definition_that_runs_twice_sees_each_time_what_is_around_it() -> None:
    read = IRModule({"a": scaled(2.0, (3,)), "b": scaled(0.5, ())})

    assert_structural_equal(
        read,
        parse("""
        @R.function(private=True)
        def a(x: R.Tensor((3,), "float32")):
            y = R.multiply(x, R.const(2.0, "float32"))
            return y

        @R.function(private=True)
        def b(x: R.Tensor((), "float32")):
            y = R.multiply(x, R.const(0.5, "float32"))
            return y
        """),
    )


def test_a_class_in_a_function_sees_what_is_around_the_function_too() -> None:
    bias = np.ones(2, np.float32)

    def build() -> Any:
        @I.ir_module
        class Local:
            @R.function
            def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                y = R.add(x, bias)
                return Local.main(y)

        return Local

    main = build()["main"]

    assert isinstance(main, Function)
    call = main.body.blocks[0].bindings[0].value
    assert isinstance(call, Call)
    assert isinstance(call.args[1], Constant)
    assert call.args[1].data is bias


def test_a_method_of_an_undecorated_class_is_left_alone() -> None:
    class Plain:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.exp(x)

    assert callable(Plain.__dict__["main"])


def test_a_decorator_takes_a_function_only() -> None:
    with pytest.raises(TypeError, match=r"^@R\.function decorates a function, got 3$"):
        R.function(3)  # on purpose


def test_names_that_scripts_do_not_have_are_refused_where_python_sees_them() -> None:
    with pytest.raises(AttributeError, match=r"^no name R\.exq in scripts, did you mean R\.exp\?$"):
        _ = R.exq
    with pytest.raises(
        AttributeError, match=r"^no name T\.sereal in scripts, did you mean T\.serial\?$"
    ):
        _ = T.sereal


def test_tools_see_the_names_and_their_meaning() -> None:
    assert {"exp", "nn", "Tensor", "dataflow", "function"} <= set(dir(R))
    assert {"serial", "Buffer", "float32", "exp", "prim_func"} <= set(dir(T))
    assert repr(R.nn.relu) == "R.nn.relu"
    assert R.exp.__doc__
