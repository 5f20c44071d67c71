"""Shapes as values: symbolic, computed by an opaque function, unknown; and how they are refined."""

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Function, ShapeExpr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor
from relax_egraph.ir.walk import bindings_of
from tests.seeds.programs import Array, floats, machines, read

n, m = dims.symbol("n"), dims.symbol("m")

THREE_WAYS_2021 = """
from tvm.script import relax as R

@R.func
def shape_example(x: R.Tensor[(n, 2, 2), "f32"]):
    with R.dataflow():
        lv0: R.Tensor[(n, 4), "f32"] = R.reshape(x, (n, 4))
        lv1: R.Tensor[(n * 4,), "f32"] = R.flatten(lv0)
        lv2: R.Shape = (n * 4,)
        lv3: R.Shape = R.call_packed("myshape_func", lv2)
        lv4: R.Tensor[lv3, "f32"] = R.call_dps(lv3, "custom_func", [lv1])
        lv5: R.Tensor[_, "f32"] = R.unique(lv4)
        lv6: R.Tensor[(m,), "f32"] = R.match_shape(lv5, (m,))
        gv0: R.Tensor[(m,), "f32"] = R.exp(lv6)
        R.outputs(gv0)
    return gv0
"""

THREE_WAYS_2022 = THREE_WAYS_2021.replace("R.func", "R.function").replace("call_dps", "call_tir")

THREE_WAYS_WITH_TABS = """
from tvm.script import relax as R

@R.function
def shape_example(x: R.Tensor[(n, 2, 2), "f32"]):
    with R.dataflow():
        # V0
\t\tlv0: R.Tensor[(n, 4), "f32"] = R.reshape(x, (n, 4))
\t\tlv1: R.Tensor[(n * 4,), "f32"] = R.flatten(lv0)
\t\tlv2: R.Shape = (n * 4,)
\t\t# V1
\t\tlv3: R.Shape = R.call_packed("myshape_func", lv2)
\t\tlv4: R.Tensor[lv3, "f32"] = R.call_tir(lv3, "custom_func", [lv1])
\t\t# V2
\t\tlv5: R.Tensor[_, "f32"] = R.unique(lv4)
\t\tlv6: R.Tensor[(m,), "f32"] = R.match_shape(lv5, (m,))
\t\tgv0: R.Tensor[(m,), "f32"] = R.exp(lv6)
\t\tR.outputs(gv0)
    return gv0
"""

THREE_WAYS = pytest.mark.parametrize(
    "text",
    [THREE_WAYS_2021, THREE_WAYS_2022, THREE_WAYS_WITH_TABS],
    ids=["2021", "2022", "tabs"],
)


def infos(module: IRModule, name: str) -> dict[str, str]:
    """What is known of each variable of a function, as script writes it."""
    function = module[name]
    assert isinstance(function, Function)
    return {b.var.name: str(b.var.struct_info) for b in bindings_of(function.body)}


@THREE_WAYS
def test_the_three_ways_a_shape_is_known_print_in_todays_form(text: str) -> None:
    module = read(text)

    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @R.function
    def shape_example(x: R.Tensor(("n", 2, 2), "float32")) -> R.Tensor(("m",), "float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv0: R.Tensor((n, 4), "float32") = R.reshape(x, R.shape([n, 4]))
            lv1: R.Tensor((n * 4,), "float32") = R.flatten(lv0)
            lv2: R.Shape((n * 4,)) = R.shape([n * 4])
            lv3: R.Shape = R.call_pure_packed("myshape_func", lv2, sinfo_args=(R.Shape,))
            lv4: R.Tensor(lv3, "float32") = R.call_dps_packed(
                "custom_func", (lv1,), out_sinfo=R.Tensor(lv3, "float32")
            )
            lv5: R.Tensor(dtype="float32", ndim=1) = R.unique(lv4)
            lv6: R.Tensor((m,), "float32") = R.match_cast(lv5, R.Tensor((m,), "float32"))
            gv0: R.Tensor((m,), "float32") = R.exp(lv6)
            R.output(gv0)
        return gv0
"""
    )


def half(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0] // 2,)


def first_elements(x: Array, out: Array) -> None:
    out[...] = x[: len(out)]


@THREE_WAYS
@pytest.mark.parametrize("size", [0, 1, 7])
def test_shapes_of_all_three_ways_are_computed_at_run_time(text: str, size: int) -> None:
    x = np.round(floats(size, 2, 2))
    expected = np.exp(np.unique(x.reshape(-1)[: size * 2]))

    vms = machines(read(text), {"myshape_func": half, "custom_func": first_elements})
    results = [vm["shape_example"](x) for vm in vms]

    for result in results:
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_a_shape_is_a_list_of_dims_or_an_expression_or_nothing() -> None:
    function = read(THREE_WAYS_2022)["shape_example"]
    assert isinstance(function, Function)

    known = {b.var.name: b.var for b in bindings_of(function.body)}

    shapes = {
        name: var.struct_info.shape
        for name, var in known.items()
        if isinstance(var.struct_info, TensorStructInfo)
    }
    assert shapes == {
        "lv0": ShapeExpr((n, 4)),
        "lv1": ShapeExpr((dims.mul(n, 4),)),
        "lv4": known["lv3"],
        "lv5": None,
        "lv6": ShapeExpr((m,)),
        "gv0": ShapeExpr((m,)),
    }


def test_rank_and_dtype_may_be_unknown() -> None:
    """`DynTensorType`: its two fields are `ndim`, -1 if unknown, and `dtype`."""
    infos = [
        TensorStructInfo(None, "float32", 2),
        TensorStructInfo(None, "float32"),
        TensorStructInfo(None, None, 2),
        TensorStructInfo(None, None),
    ]

    assert [(i.ndim, i.dtype) for i in infos] == [
        (2, "float32"),
        (-1, "float32"),
        (2, None),
        (-1, None),
    ]
    assert list(map(str, infos)) == [
        'R.Tensor(dtype="float32", ndim=2)',
        'R.Tensor(dtype="float32")',
        "R.Tensor(ndim=2)",
        "R.Tensor()",
    ]


# --- symbolic shapes ----------------------------------------------------------------------

# Corrected: the listing ends in dots, before R.outputs and return.
SYMBOLIC = """
from tvm.script import relax as R

@R.function
def shape_example(x: R.Tensor[(n, m, 2), "f32"]):
    with R.dataflow():
        # one tab below stands for eight spaces
\tlv0: R.Tensor[(n, m * 2), "f32"] = R.reshape(x, (n, m*2))
\tlv1: R.Tensor[(n * m * 2,), "f32"] = R.flatten(lv0)
\tR.outputs(lv1)
    return lv1
"""


def test_shapes_are_expressions_of_symbols() -> None:
    module = read(SYMBOLIC)

    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @R.function
    def shape_example(x: R.Tensor(("n", "m", 2), "float32")) -> R.Tensor(("m * n * 2",), "float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv0: R.Tensor((n, m * 2), "float32") = R.reshape(x, R.shape([n, m * 2]))
            lv1: R.Tensor((m * n * 2,), "float32") = R.flatten(lv0)
            R.output(lv1)
        return lv1
"""
    )
    for x in (floats(2, 3, 2), floats(0, 3, 2)):
        for vm in machines(module):
            np.testing.assert_array_equal(vm["shape_example"](x), x.reshape(-1))


# --- deduction ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lhs", "rhs", "out"),
    [
        ((n, m), (m,), (n, m)),
        ((n, 1, m), (2, m), (n, 2, m)),
        ((2, 3), (3,), (2, 3)),
        ((n, 4), (1, 1), (n, 4)),
    ],
)
def test_the_shape_of_a_sum_is_deduced(
    lhs: tuple[dims.Dim, ...], rhs: tuple[dims.Dim, ...], out: tuple[dims.Dim, ...]
) -> None:
    x, y = Var("x", tensor(lhs, "float32")), Var("y", tensor(rhs, "float32"))

    result = call("add", x, y).struct_info

    assert result == tensor(out, "float32")


def test_the_shape_of_a_sum_that_cannot_be_deduced_is_unknown_and_it_still_runs() -> None:
    module = read("""
@R.function
def main(x: R.Tensor[_, "f32"], y: R.Tensor[(n, m), "f32"], z: R.Tensor[(k,), "f32"]):
    with R.dataflow():
        lv0 = R.add(x, y)
        lv1 = R.add(y, z)
        R.outputs(lv0, lv1)
    return (lv0, lv1)
""")

    found = infos(module, "main")

    assert found == {
        "lv0": 'R.Tensor(dtype="float32")',
        "lv1": 'R.Tensor(dtype="float32", ndim=2)',
    }
    x, y, z = floats(5, 2, 1), floats(2, 3), floats(1)
    for vm in machines(module):
        first, second = vm["main"](x, y, z)
        np.testing.assert_array_equal(first, x + y)
        np.testing.assert_array_equal(second, y + z)


def test_a_shape_that_is_unknown_is_looked_up_at_run_time() -> None:
    x = Var("x", TensorStructInfo(None, "float32"))

    result = call("shape_of", x).struct_info

    assert result == ShapeStructInfo(None)


def test_the_shape_of_a_function_is_substituted_where_it_is_called() -> None:
    """Across functions: symbols of the callee are those of the arguments; others are unknown."""
    module = read("""
@I.ir_module
class Module:
    @R.function
    def pairs(x: R.Tensor[(a, b), "f32"]) -> R.Tensor[(a, b * 2), "f32"]:
        y = R.concat((x, x), axis=1)
        return y

    @R.function
    def distinct(x: R.Tensor[(a,), "f32"]) -> R.Tensor[_, "f32"]:
        y = R.unique(x)
        return y

    @R.function
    def main(x: R.Tensor[(n, 3), "f32"]):
        lv0 = pairs(x)
        lv1 = R.flatten(lv0)
        lv2 = distinct(lv1)
        lv3: R.Tensor[(m,), "f32"] = R.match_shape(lv2, (m,))
        gv0 = R.exp(lv3)
        return gv0
""")

    found = infos(module, "main")

    assert found == {
        "lv0": 'R.Tensor((n, 6), "float32")',
        "lv1": 'R.Tensor((n * 6,), "float32")',
        "lv2": 'R.Tensor(dtype="float32", ndim=1)',
        "lv3": 'R.Tensor((m,), "float32")',
        "gv0": 'R.Tensor((m,), "float32")',
    }
    x = np.round(floats(4, 3))
    for vm in machines(module):
        np.testing.assert_allclose(vm["main"](x), np.exp(np.unique(x)), rtol=1e-6)
