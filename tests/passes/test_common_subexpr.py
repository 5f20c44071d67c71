"""Common subexpressions: what dominates is used again, and only that."""

import numpy as np

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import BindingBlock, Function, SeqExpr, Tuple, Var, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import tensor
from relax_egraph.passes import eliminate_common_subexpr
from relax_egraph.script import parse
from tests.support.transformed import becomes, floats, same_value, stays

HEAD = """
@R.function
def main(
    x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("n", 2), "float32"), c: R.Tensor((), "bool")
):
"""


def function(body: str) -> str:
    return HEAD + "\n".join(f"    {line}" for line in body.strip().splitlines())


def merged(before: str, after: str) -> None:
    changed = becomes(eliminate_common_subexpr, function(before), function(after))
    for flag in (True, False):
        same_value(parse(function(before)), changed, floats(3, 2), floats(3, 2), np.bool_(flag))


def test_a_computation_is_used_again_with_all_that_follows_from_it() -> None:
    merged(
        """
with R.dataflow():
    a = R.add(x, y)
    b = R.add(x, y)
    d = R.exp(a)
    e = R.exp(b)
    gv = R.multiply(d, e)
    R.output(gv)
return gv
""",
        """
with R.dataflow():
    a = R.add(x, y)
    d = R.exp(a)
    gv = R.multiply(d, d)
    R.output(gv)
return gv
""",
    )


def test_operands_in_another_order_and_other_attributes_are_not_the_same() -> None:
    stays(
        eliminate_common_subexpr,
        function(
            """
a = R.subtract(x, y)
b = R.subtract(y, x)
d = R.sum(x, axis=[0])
e = R.sum(x, axis=[1])
f = R.sum(x, axis=[1], keepdims=True)
return (a, b, d, e, f)
"""
        ),
    )


def test_attributes_that_are_left_out_are_their_defaults() -> None:
    x = Var("x", tensor((3, 2), "float32"))
    short, long = call("nn.softmax", x), call("nn.softmax", x, axis=-1)
    a, b = Var("a", short.struct_info), Var("b", long.struct_info)
    body = SeqExpr((BindingBlock((VarBinding(a, short), VarBinding(b, long))),), Tuple((a, b)))
    module = IRModule({"main": Function((x,), body, body.struct_info)})

    after = eliminate_common_subexpr(module)["main"]

    assert isinstance(after, Function)
    assert [binding.var for binding in after.body.blocks[0].bindings] == [a]


def test_a_local_variable_of_an_earlier_block_becomes_an_output_of_it() -> None:
    merged(
        """
with R.dataflow():
    a = R.add(x, y)
    gv = R.exp(a)
    R.output(gv)
with R.dataflow():
    b = R.add(x, y)
    gv1 = R.multiply(b, gv)
    R.output(gv1)
return gv1
""",
        """
with R.dataflow():
    a = R.add(x, y)
    gv = R.exp(a)
    R.output(a, gv)
with R.dataflow():
    gv1 = R.multiply(a, gv)
    R.output(gv1)
return gv1
""",
    )


def test_an_output_that_repeats_a_local_variable_of_its_block_makes_that_an_output() -> None:
    merged(
        """
with R.dataflow():
    a = R.add(x, y)
    gv = R.add(x, y)
    gv1 = R.exp(a)
    R.output(gv, gv1)
return (gv, gv1)
""",
        """
with R.dataflow():
    a = R.add(x, y)
    gv1 = R.exp(a)
    R.output(a, gv1)
return (a, gv1)
""",
    )


def test_what_is_computed_before_a_branch_is_known_in_it_and_not_the_other_way() -> None:
    merged(
        """
a = R.add(x, y)
if c:
    b = R.add(x, y)
    d = R.exp(b)
    e = R.log(R.exp(a))
    r = R.multiply(d, e)
else:
    d1 = R.exp(x)
    r = R.multiply(d1, a)
f = R.exp(a)
g = R.exp(x)
return (r, f, g)
""",
        """
a = R.add(x, y)
if c:
    d = R.exp(a)
    e = R.log(d)
    r = R.multiply(d, e)
else:
    d1 = R.exp(x)
    r = R.multiply(d1, a)
f = R.exp(a)
g = R.exp(x)
return (r, f, g)
""",
    )


def test_tuples_and_projections_are_merged_and_conditionals_are_not() -> None:
    merged(
        """
t = (x, y)
u = (x, y)
a = t[0]
b = u[0]
if c:
    r = R.exp(a)
else:
    r = b
if c:
    s = R.exp(a)
else:
    s = b
return (r, s)
""",
        """
t = (x, y)
a = t[0]
if c:
    r = R.exp(a)
else:
    r = a
if c:
    s = R.exp(a)
else:
    s = a
return (r, s)
""",
    )


def test_calls_with_effects_are_never_merged_and_pure_ones_are() -> None:
    becomes(
        eliminate_common_subexpr,
        function(
            """
a = R.exp(x)
p = R.call_packed("f", x, sinfo_args=(R.Tensor((3,), "float32"),))
q = R.call_packed("f", x, sinfo_args=(R.Tensor((3,), "float32"),))
r = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((3,), "float32"),))
s = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((3,), "float32"),))
t = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((4,), "float32"),))
b = R.exp(x)
return (a, b, p, q, r, s, t)
"""
        ),
        function(
            """
a = R.exp(x)
p = R.call_packed("f", x, sinfo_args=(R.Tensor((3,), "float32"),))
q = R.call_packed("f", x, sinfo_args=(R.Tensor((3,), "float32"),))
r = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((3,), "float32"),))
t = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((4,), "float32"),))
return (a, a, p, q, r, r, t)
"""
        ),
    )


def test_pure_functions_of_the_module_are_merged_and_after_an_impure_one_nothing_is_known() -> None:
    text = """
@I.ir_module
class Module:
    @R.function(private=True, pure=False)
    def noisy(x: R.Tensor((2,), "float32")):
        y = R.call_packed("f", x, sinfo_args=(R.Tensor((2,), "float32"),))
        return y
    @R.function(private=True)
    def quiet(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        return y
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        a = cls.quiet(x)
        b = cls.quiet(x)
        d = cls.noisy(x)
        e = cls.quiet(x)
        return (a, b, d, e)
"""

    becomes(
        eliminate_common_subexpr,
        text,
        text.replace("        b = cls.quiet(x)\n", "").replace("(a, b, d, e)", "(a, a, d, e)"),
    )


def test_what_is_declared_to_be_something_else_is_not_the_same() -> None:
    stays(
        eliminate_common_subexpr,
        """
        @R.function
        def main(x: R.Tensor("float32", ndim=1)):
            a: R.Tensor((3,), "float32") = R.unique(x)
            b: R.Tensor((4,), "float32") = R.unique(x)
            return (a, b)
        """,
    )


def test_constants_are_the_same_by_value_bit_for_bit() -> None:
    becomes(
        eliminate_common_subexpr,
        function(
            """
a = R.add(x, R.const(1.0, "float32"))
b = R.add(x, R.const(1.0, "float32"))
d = R.multiply(x, R.const(0.0, "float32"))
e = R.multiply(x, R.const(-0.0, "float32"))
return (a, b, d, e)
"""
        ),
        function(
            """
a = R.add(x, R.const(1.0, "float32"))
d = R.multiply(x, R.const(0.0, "float32"))
e = R.multiply(x, R.const(-0.0, "float32"))
return (a, a, d, e)
"""
        ),
    )


def test_a_local_function_captures_nothing_new_and_is_merged_inside() -> None:
    becomes(
        eliminate_common_subexpr,
        function(
            """
a = R.exp(x)
@R.function
def f(z: R.Tensor((n, 2), "float32")) -> R.Tensor((n, 2), "float32"):
    b = R.exp(x)
    d = R.exp(x)
    e = R.add(b, d)
    return e
g = f(a)
h = f(a)
return (g, h)
"""
        ),
        function(
            """
a = R.exp(x)
@R.function
def f(z: R.Tensor((n, 2), "float32")) -> R.Tensor((n, 2), "float32"):
    b = R.exp(x)
    e = R.add(b, b)
    return e
g = f(a)
return (g, g)
"""
        ),
    )


def test_what_is_written_in_place_is_computed_again() -> None:
    stays(
        eliminate_common_subexpr,
        """
@I.ir_module
class Module:
    @T.prim_func
    def bump(x: T.Buffer((2,), "float32")):
        for i in range(2):
            x[i] = x[i] + T.float32(1)
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        a = R.exp(x)
        y = R.call_tir_inplace(
            cls.bump, (x,), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32")
        )
        b = R.exp(x)
        return (a, b, y)
""",
    )
