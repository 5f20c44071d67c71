"""Inlining: calls of private functions before, their bodies after."""

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.passes import inline_called_once, inline_private_functions
from relax_egraph.script import parse
from tests.support.transformed import becomes, floats, same_value, stays


def test_a_body_stands_where_the_function_was_called() -> None:
    before = """
@I.ir_module
class Module:
    @R.function(private=True)
    def layer(x: R.Tensor(("m", "k"), "float32"), w: R.Tensor(("k", "k"), "float32")):
        m = T.int64()
        k = T.int64()
        with R.dataflow():
            lv = R.matmul(x, w)
            s = R.zeros(R.shape([m, k]), dtype="float32")
            gv = R.maximum(lv, s)
            R.output(gv)
        return gv
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
        cls = Module
        lv = cls.layer(x, w)
        gv = cls.layer(lv, w)
        return gv
"""
    after = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        lv1 = R.matmul(x, w)
        s = R.zeros(R.shape([n, 4]), dtype="float32")
        gv1 = R.maximum(lv1, s)
        R.output(gv1)
    lv = gv1
    with R.dataflow():
        lv2 = R.matmul(lv, w)
        s1 = R.zeros(R.shape([n, 4]), dtype="float32")
        gv2 = R.maximum(lv2, s1)
        R.output(gv2)
    gv = gv2
    return gv
"""

    changed = becomes(inline_private_functions, before, after)

    same_value(parse(before), changed, floats(3, 4), floats(4, 4))
    names = [
        b.var.name for _, f in changed.relax_functions() for k in f.body.blocks for b in k.bindings
    ]
    assert len(set(names)) == len(names)


def test_in_a_dataflow_block_the_body_is_part_of_it() -> None:
    becomes(
        inline_private_functions,
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def twice(x: R.Tensor(("k",), "float32")):
        y = R.add(x, x)
        return y
    @R.function(private=True)
    def fourfold(x: R.Tensor(("k",), "float32")):
        cls = Module
        with R.dataflow():
            lv = cls.twice(x)
            gv = cls.twice(lv)
            R.output(gv)
        return gv
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        cls = Module
        with R.dataflow():
            gv = cls.fourfold(x)
            R.output(gv)
        return gv
""",
        """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        y = R.add(x, x)
        lv = y
        y1 = R.add(lv, lv)
        gv1 = y1
        gv = gv1
        R.output(gv)
    return gv
""",
    )


def test_what_the_function_says_of_an_argument_is_checked_where_it_is_not_known() -> None:
    before = """
@I.ir_module
class Module:
    @R.function(private=True)
    def scaled(x: R.Tensor(("k",), "float32"), y: R.Tensor(("n",), "float32")):
        k = T.int64()
        n = T.int64()
        z = R.zeros(R.shape([k + n]), dtype="float32")
        return z
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        cls = Module
        u = R.unique(x)
        a = cls.scaled(u, y)
        b = cls.scaled(u, y)
        return (a, b)
"""
    after = """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
    m = T.int64()
    k = T.int64()
    k1 = T.int64()
    u = R.unique(x)
    x1 = R.match_cast(u, R.Tensor((k,), "float32"))
    z = R.zeros(R.shape([k + m]), dtype="float32")
    a: R.Tensor("float32", ndim=1) = z
    x2 = R.match_cast(u, R.Tensor((k1,), "float32"))
    z1 = R.zeros(R.shape([k1 + m]), dtype="float32")
    b: R.Tensor("float32", ndim=1) = z1
    return (a, b)
"""

    changed = becomes(inline_private_functions, before, after)

    same_value(parse(before), changed, floats(3), floats(2))


def test_several_unproven_arguments_are_checked_together() -> None:
    before = """
@I.ir_module
class Module:
    @R.function(private=True)
    def both(x: R.Tensor(("k * 2",), "float32"), y: R.Tensor(("k",), "float32")):
        z = R.concat((x, y), axis=0)
        return z
    @R.function
    def main(x: R.Tensor("float32", ndim=1), y: R.Tensor("float32", ndim=1)):
        cls = Module
        z = cls.both(x, y)
        return z
"""
    after = """
@R.function
def main(x: R.Tensor("float32", ndim=1), y: R.Tensor("float32", ndim=1)):
    k = T.int64()
    args = R.match_cast(
        (x, y), R.Tuple(R.Tensor((k * 2,), "float32"), R.Tensor((k,), "float32"))
    )
    x1 = args[0]
    y1 = args[1]
    z1 = R.concat((x1, y1), axis=0)
    z: R.Tensor("float32", ndim=1) = z1
    return z
"""

    changed = becomes(inline_private_functions, before, after)

    same_value(parse(before), changed, floats(4), floats(2))
    with pytest.raises(RunError):
        evaluate(changed, "main", floats(4), floats(3))


def test_what_the_function_says_of_its_result_is_checked_where_it_is_not_known() -> None:
    becomes(
        inline_private_functions,
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def f(x: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        y = R.unique(x)
        return y
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        cls = Module
        z = cls.f(x)
        return z
""",
        """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    y = R.unique(x)
    result = R.match_cast(y, R.Tensor((n,), "float32"))
    z = result
    return z
""",
    )


def test_what_must_stay_a_function_stays() -> None:
    stays(
        inline_private_functions,
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def count(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        c = R.greater(x, R.const(0, "int64"))
        if c:
            y = cls.back(x)
        else:
            y = x
        return y
    @R.function(private=True)
    def back(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        y = cls.count(x)
        return y
    @R.function
    def public(x: R.Tensor((), "int64")):
        y = R.negative(x)
        return y
    @R.function(private=True)
    def kernel(x: R.Tensor((), "int64")):
        R.func_attr({"primitive": True})
        with R.dataflow():
            y = R.negative(x)
            R.output(y)
        return y
    @R.function(private=True)
    def value(x: R.Tensor((), "int64")):
        y = R.negative(x)
        return y
    @R.function(private=True)
    def branches(x: R.Tensor((), "int64"), c: R.Tensor((), "bool")):
        if c:
            y = R.negative(x)
        else:
            y = x
        return y
    @R.function
    def main(x: R.Tensor((), "int64"), c: R.Tensor((), "bool")):
        cls = Module
        a = cls.count(x)
        b = cls.public(a)
        with R.dataflow():
            d = cls.kernel(b)
            e = cls.branches(d, c)
            R.output(e)
        return (e, cls.value)
""",
    )


def test_a_function_with_branches_and_functions_inside_is_inlined_outside_of_dataflow() -> None:
    before = """
@I.ir_module
class Module:
    @R.function(private=True)
    def f(x: R.Tensor(("k",), "float32"), c: R.Tensor((), "bool")):
        k = T.int64()
        @R.function
        def g(y: R.Tensor((k,), "float32")) -> R.Tensor((k,), "float32"):
            z = R.add(x, y)
            return z
        if c:
            r = g(x)
        else:
            r = x
        return r
    @R.function
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
        cls = Module
        a = cls.f(x, c)
        b = cls.f(a, c)
        return b
"""

    changed = inline_private_functions(parse(before))

    assert list(changed.functions) == ["main"]
    for flag in (True, False):
        same_value(parse(before), changed, floats(3), np.bool_(flag))


def test_a_private_function_that_nothing_calls_is_dropped() -> None:
    becomes(
        inline_private_functions,
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def f(x: R.Tensor((2,), "float32")):
        return x
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return x
""",
        """
@R.function
def main(x: R.Tensor((2,), "float32")):
    return x
""",
    )


def test_effects_come_along_in_order() -> None:
    before = """
@I.ir_module
class Module:
    @R.function(private=True, pure=False)
    def noisy(x: R.Tensor((2,), "float32")):
        y = R.call_packed("log", x, sinfo_args=(R.Tensor((2,), "float32"),))
        return y
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        a = cls.noisy(x)
        b = R.exp(a)
        d = cls.noisy(b)
        return d
"""
    after = """
@R.function(pure=False)
def main(x: R.Tensor((2,), "float32")):
    y = R.call_packed("log", x, sinfo_args=(R.Tensor((2,), "float32"),))
    a = y
    b = R.exp(a)
    y1 = R.call_packed("log", b, sinfo_args=(R.Tensor((2,), "float32"),))
    d = y1
    return d
"""

    becomes(inline_private_functions, before, after)


def test_what_one_place_calls_is_inlined_and_what_two_call_stays() -> None:
    before = """
@I.ir_module
class Module:
    @R.function(private=True)
    def once(x: R.Tensor((4,), "float32")):
        y = R.exp(x)
        return y
    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        return y
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        a = cls.twice(x)
        b = cls.once(a)
        c = cls.twice(b)
        return c
"""
    after = """
@I.ir_module
class Module:
    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        return y
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        a = cls.twice(x)
        y = R.exp(a)
        b = y
        c = cls.twice(b)
        return c
"""

    changed = becomes(inline_called_once, before, after)

    same_value(parse(before), changed, floats(4))
