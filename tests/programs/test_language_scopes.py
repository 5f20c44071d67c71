"""What is known of a value, where it is read: symbols and variables of the inside stay inside."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, optimize, parse
from relax_egraph.ir.agreement import in_scope
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Var
from relax_egraph.ir.shape_variables import outside
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import lambda_lift, normalize
from tests.support.lowered import f32, k, m, n
from tests.support.transformed import equal_values, floats

BRANCHES = """
@R.function
def main(x: R.Tensor("float32", ndim=2), c: R.Tensor((), "bool")):
    m, k = T.int64(), T.int64()
    if c:
        a = R.match_cast(x, R.Tensor((m, k), "float32"))
        r = (R.zeros(R.shape([m, k * 2]), dtype="float32"), R.shape([m, k]), R.prim_value(m))
    else:
        a = R.match_cast(x, R.Tensor((k, m), "float32"))
        r = (R.ones(R.shape([m, k * 2]), dtype="float32"), R.shape([m, k]), R.prim_value(k))
    b = R.match_cast(x, R.Tensor((m, k), "float32"))
    s = r[1]
    w = R.zeros(s, dtype="float32")
    return (r, b, w)
"""

CAST_LATER = """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor("float32", ndim=1)):
    @R.function
    def f(z: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        u = R.add(z, z)
        return u
    k = T.int64()
    a = R.match_cast(y, R.Tensor((k,), "float32"))
    b = f(x)
    c = f(a)
    return (b, c)
"""

CAST_INSIDE = """
@R.function
def main(x: R.Tensor("float32", ndim=1), y: R.Tensor("float32", ndim=1)):
    @R.function
    def f(z: R.Tensor("float32", ndim=1)):
        k = T.int64()
        u = R.match_cast(z, R.Tensor((k,), "float32"))
        v = R.add(u, u)
        return v
    b = f(x)
    c = f(y)
    return (b, c)
"""

COMPUTED_SHAPE = """
@R.function
def main(x: R.Tensor("float32"), y: R.Tensor("float32", ndim=1)):
    s = R.shape_of(x)
    a: R.Tensor(s, "float32") = R.add(x, x)
    return (a, y)
"""


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (BRANCHES, (floats(2, 3), np.asarray(True))),
        (BRANCHES, (floats(2, 3), np.asarray(False))),
        (CAST_LATER, (floats(3), floats(4))),
        (CAST_INSIDE, (floats(3), floats(4))),
        (COMPUTED_SHAPE, (floats(2, 3), floats(4))),
    ],
)
def test_every_reading_of_a_program_agrees(text: str, args: tuple[Any, ...]) -> None:
    module = parse(text)
    assert_well_formed(module)
    expected = evaluate(module, "main", *args)

    assert_structural_equal(parse(module.script()), module)
    for same in (normalize(module), lambda_lift(module), optimize(module)):
        assert_well_formed(same)
        equal_values(evaluate(same, "main", *args), expected)
    equal_values(VirtualMachine(build(module))["main"](*args), expected)


def test_after_a_conditional_the_symbols_of_its_branches_are_forgotten() -> None:
    main = dict(parse(BRANCHES).relax_functions())["main"]

    result = main.ret_struct_info

    assert str(result) == (
        'R.Tuple(R.Tuple(R.Tensor(dtype="float32", ndim=2), R.Shape(ndim=2), R.Prim("int64")), '
        'R.Tensor((m, k), "float32"), R.Tensor(dtype="float32", ndim=2))'
    )


def test_a_symbol_that_was_known_before_a_conditional_stays() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor("float32", ndim=1), c: R.Tensor((), "bool")):
    n = T.int64()
    if c:
        z = R.match_cast(y, R.Tensor((n,), "float32"))
    else:
        z = R.exp(x)
    return z
"""
    )

    assert dict(module.relax_functions())["main"].ret_struct_info == f32(n)


@pytest.mark.parametrize(
    ("info", "inside"),
    [
        (f32(n, 4), f32(n, 4)),
        (f32(n, m), tensor(None, "float32", 2)),
        (TupleStructInfo((f32(n), f32(k))), TupleStructInfo((f32(n), tensor(None, "float32", 1)))),
        (ShapeStructInfo((m,), 1), ShapeStructInfo(None, 1)),
        (FuncStructInfo((f32(k),), f32(k)), FuncStructInfo((f32(k),), f32(k))),
        (FuncStructInfo((), f32(k)), FuncStructInfo((), tensor(None, "float32", 1))),
        (FuncStructInfo(None, f32(k)), FuncStructInfo(None, tensor(None, "float32", 1))),
    ],
)
def test_of_a_symbol_that_is_not_in_scope_only_the_rank_is_left(
    info: StructInfo, inside: StructInfo
) -> None:
    assert in_scope(info, {"n"}) == inside


def test_of_a_shape_variable_that_is_not_visible_only_the_rank_is_left() -> None:
    seen, hidden = (Var(name, ShapeStructInfo(None, 2)) for name in "sh")
    there, gone = (TensorStructInfo(v, "float32", 2) for v in (seen, hidden))
    unknown = tensor(None, "float32", 2)

    left = outside(TupleStructInfo((there, gone, FuncStructInfo((), gone))), {seen})

    assert left == TupleStructInfo((there, unknown, FuncStructInfo((), unknown)))
    assert outside(there, {seen}) is there


def test_a_list_that_a_packed_function_gives_is_a_tuple() -> None:
    module = parse(
        """
@R.function(pure=False)
def main(x: R.Tensor((3,), "float32")):
    t = R.call_packed(
        "both", x, sinfo_args=R.Tuple(R.Tensor((3,), "float32"), R.Tensor((), "float32"))
    )
    return t
"""
    )
    packed = {"both": lambda x: [x, np.float32(2.0)]}  # pyright: ignore[reportUnknownLambdaType] # any array

    expected = evaluate(module, "main", floats(3), packed=packed)

    equal_values(expected, (floats(3), np.asarray(2.0, np.float32)))
    equal_values(VirtualMachine(build(module), packed)["main"](floats(3)), expected)


def test_a_pass_that_learns_of_a_branch_tells_the_conditional() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor(("n", 2), "float32"), c: R.Tensor((), "bool")):
    n = T.int64()
    @R.function
    def f(y: R.Tensor(("k", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        z = R.add(R.zeros(R.shape([n, 2]), dtype="float32"), x)
        return z
    if c:
        r = f(x)
    else:
        r = R.exp(x)
    return r
"""
    )

    lifted = lambda_lift(module)

    assert_structural_equal(parse(lifted.script()), lifted)
