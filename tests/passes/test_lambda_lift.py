"""Local functions and closures: lifted, evaluated, built and run."""

from typing import Any

import numpy as np

from relax_egraph.ir.expr import Function
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.passes import lambda_lift
from relax_egraph.script import parse
from tests.support.closures import HIGHER_ORDER, RETURNED
from tests.support.transformed import becomes, floats, runs_as_evaluated, same_value, stays


def lifted(before: str, after: str, *args: Any) -> None:
    """Assert what `before` becomes, and that both compute the same, evaluated and built."""
    changed = becomes(lambda_lift, before, after)
    same_value(parse(before), changed, *args)
    runs_as_evaluated(before, *args)


def test_a_function_that_captures_nothing_becomes_one_of_the_module() -> None:
    lifted(
        """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    @R.function
    def twice(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        z = R.add(y, y)
        return z
    a = twice(x)
    return a
""",
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def main_twice(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        z = R.add(y, y)
        return z
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        cls = Module
        a = cls.main_twice(x)
        return a
""",
        floats(3),
    )


def test_what_is_captured_is_an_argument_behind_the_others() -> None:
    lifted(
        """
@R.function
def main(x: R.Tensor(("n", 2), "float32"), w: R.Tensor((2,), "float32")):
    n = T.int64()
    @R.function
    def f(y: R.Tensor((n, 2), "float32")) -> R.Tensor((n, 2), "float32"):
        a = R.multiply(y, w)
        b = R.add(a, x)
        return b
    a = f(x)
    b = f(a)
    return b
""",
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def main_f(
        y: R.Tensor(("n", 2), "float32"), w: R.Tensor((2,), "float32"),
        x: R.Tensor(("n", 2), "float32"),
    ) -> R.Tensor(("n", 2), "float32"):
        a = R.multiply(y, w)
        b = R.add(a, x)
        return b
    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), w: R.Tensor((2,), "float32")):
        cls = Module
        a = cls.main_f(x, w, x)
        b = cls.main_f(a, w, x)
        return b
""",
        floats(3, 2),
        floats(2),
    )


def test_a_symbol_that_no_captured_tensor_tells_is_captured_as_a_shape() -> None:
    lifted(
        """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
    n = T.int64()
    m = T.int64()
    @R.function
    def f(z: R.Tensor((n,), "float32")):
        a = R.zeros(R.shape([n, m]), dtype="float32")
        return a
    a = f(x)
    return a
""",
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def main_f(z: R.Tensor(("n",), "float32"), dims: R.Shape(("m", "n"))):
        n = T.int64()
        m = T.int64()
        a = R.zeros(R.shape([n, m]), dtype="float32")
        return a
    @R.function
    def main(
        x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")
    ) -> R.Tensor("float32", ndim=2):
        n = T.int64()
        m = T.int64()
        cls = Module
        a = cls.main_f(x, R.shape([m, n]))
        return a
""",
        floats(3),
        floats(2),
    )


def test_a_local_function_may_call_itself() -> None:
    lifted(
        """
@R.function
def main(x: R.Tensor((2,), "float32"), count: R.Tensor((), "int64")):
    @R.function
    def loop(
        i: R.Tensor((), "int64"), s: R.Tensor((2,), "float32")
    ) -> R.Tensor((2,), "float32"):
        c = R.less(i, count)
        if c:
            j = R.add(i, R.const(1, "int64"))
            t = R.add(s, x)
            r = loop(j, t)
        else:
            r = s
        return r
    a = loop(R.const(0, "int64"), x)
    return a
""",
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def main_loop(
        i: R.Tensor((), "int64"), s: R.Tensor((2,), "float32"),
        count: R.Tensor((), "int64"), x: R.Tensor((2,), "float32"),
    ) -> R.Tensor((2,), "float32"):
        cls = Module
        c = R.less(i, count)
        if c:
            j = R.add(i, R.const(1, "int64"))
            t = R.add(s, x)
            r = cls.main_loop(j, t, count, x)
        else:
            r = s
        return r
    @R.function
    def main(x: R.Tensor((2,), "float32"), count: R.Tensor((), "int64")):
        cls = Module
        a = cls.main_loop(R.const(0, "int64"), x, count, x)
        return a
""",
        floats(2),
        np.int64(7),
    )


def test_a_function_that_is_returned_is_a_closure() -> None:
    lifted(
        RETURNED,
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def adder_add(y: R.Tensor((3,), "float32"), x: R.Tensor((3,), "float32")):
        z = R.add(y, x)
        return z
    @R.function
    def adder(
        x: R.Tensor((3,), "float32"),
    ) -> R.Callable((R.Tensor((3,), "float32"),), R.Tensor((3,), "float32")):
        cls = Module
        add: R.Callable((R.Tensor((3,), "float32"),), R.Tensor((3,), "float32")) = R.make_closure(
            cls.adder_add, (x,)
        )
        return add
    @R.function
    def main(a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
        cls = Module
        f = cls.adder(a)
        c = R.invoke_pure_closure(f, (b,), sinfo_args=(R.Tensor((3,), "float32"),))
        d = R.invoke_pure_closure(f, (c,), sinfo_args=(R.Tensor((3,), "float32"),))
        return d
""",
        floats(3),
        floats(3),
    )


def test_one_local_function_may_call_another_and_gets_what_that_captures() -> None:
    after = lambda_lift(parse(HIGHER_ORDER))

    both = after["main_both"]

    assert isinstance(both, Function)
    assert [p.name for p in both.params] == ["y", "w"]
    assert list(after.functions) == ["twice", "double", "main_scale", "main_both", "main"]


def test_effects_make_an_impure_closure() -> None:
    changed = lambda_lift(
        parse(
            """
@R.function(pure=False)
def main(
    f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), False),
    g: R.Object, x: R.Tensor((2,), "float32"),
):
    y = f(x)
    z = g(y)
    return z
"""
        )
    )

    assert changed.script().count("R.invoke_closure(") == 2


def test_a_module_without_functions_as_values_stays_itself() -> None:
    stays(
        lambda_lift,
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def f(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        return y
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        y = cls.f(x)
        return (y, cls.f)
""",
    )


def test_no_function_is_left_inside_of_another_however_deep() -> None:
    text = """
@R.function
def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
    @R.function
    def f(a: R.Tensor((2,), "float32")):
        @R.function
        def g(b: R.Tensor((2,), "float32")):
            @R.function
            def h(c: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                d = R.add(c, x)
                e = R.add(d, a)
                k = R.multiply(e, b)
                return k
            return h
        return g
    u = f(y)
    v = u(x)
    w = v(y)
    return w
"""

    runs_as_evaluated(text, floats(2), floats(2))
    after = lambda_lift(parse(text))

    inside: list[object] = []
    for _, function in after.relax_functions():
        post_order_visit(
            function.body, lambda e: inside.append(e) if isinstance(e, Function) else None
        )
    assert inside == []
    assert list(after.functions) == ["main_f_g_h", "main_f_g", "main_f", "main"]


def test_the_names_of_the_module_are_not_taken_twice() -> None:
    after = lambda_lift(
        parse(
            """
@I.ir_module
class Module:
    @R.function
    def main_f(x: R.Tensor((2,), "float32")):
        return x
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        @R.function
        def f(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            z = R.exp(y)
            return z
        a = f(x)
        return a
"""
        )
    )

    assert list(after.functions) == ["main_f", "main_f1", "main"]
