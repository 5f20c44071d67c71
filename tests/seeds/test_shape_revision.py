"""Shapes that are matched at run time, that come back by a match, and that later uses tell."""

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.walk import bindings_of
from relax_egraph.passes.refine_shapes import refine_shapes
from tests.seeds.programs import floats, machines, read

# --- match_shape --------------------------------------------------------------------------

# Corrected: the listing ends before R.outputs and return.
MATCHED = """
from tvm.script import relax as R

@R.func
def shape_example(x: R.Tensor[_, "f32"], y: R.Tensor[_, "f32"]):
    with R.dataflow():
        lv0: R.Tensor[(n, m)] = R.match_shape(x, (n, m))
        lv1: R.Tensor[(n, m)] = R.match_shape(y, (n, m))
        lv2: Shape = R.match_shape(R.shape_of(y), (n, m))
        R.outputs(lv0, lv1, lv2)
    return (lv0, lv1, lv2)
"""

MATCHED_TEXTS = pytest.mark.parametrize(
    "text", [MATCHED, MATCHED.replace("R.func", "R.function")], ids=["2021", "2022"]
)


@MATCHED_TEXTS
def test_matches_of_tensors_and_shapes_print_in_todays_form(text: str) -> None:
    module = read(text)

    assert (
        module.script()
        == """\
@I.ir_module
class Module:
    @R.function
    def shape_example(
        x: R.Tensor(dtype="float32"),
        y: R.Tensor(dtype="float32"),
    ) -> R.Tuple(
        R.Tensor(("n", "m"), "float32"), R.Tensor(("n", "m"), "float32"), R.Shape(("n", "m"))
    ):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv0: R.Tensor((n, m), "float32") = R.match_cast(x, R.Tensor((n, m), "float32"))
            lv1: R.Tensor((n, m), "float32") = R.match_cast(y, R.Tensor((n, m), "float32"))
            lv: R.Shape = R.shape_of(y)
            lv2: R.Shape((n, m)) = R.match_cast(lv, R.Shape((n, m)))
            R.output(lv0, lv1, lv2)
        return (lv0, lv1, lv2)
"""
    )


@MATCHED_TEXTS
def test_a_match_returns_what_is_matched(text: str) -> None:
    x, y = floats(2, 3), floats(2, 3) + 1

    results = [vm["shape_example"](x, y) for vm in machines(read(text))]

    for lv0, lv1, lv2 in results:
        np.testing.assert_array_equal(lv0, x)
        np.testing.assert_array_equal(lv1, y)
        assert lv2 == (2, 3)


def test_a_symbol_that_is_matched_again_is_compared() -> None:
    expected = (
        'shape_example: match_cast lv1: expected R.Tensor((n, m), "float32"), '
        'got R.Tensor((2, 4), "float32"): dimension 1 is 4, needs m = 3'
    )

    for vm in machines(read(MATCHED)):
        with pytest.raises(RunError) as refused:
            vm["shape_example"](floats(2, 3), floats(2, 4))

        assert str(refused.value) == expected


# --- without shapes -----------------------------------------------------------------------

WITHOUT_SHAPES = """
from tvm.script import relax as R

@R.function
def shape_example(x: R.Tensor[_, _]):
    with R.dataflow():
        # computation without shape
\t\tlv0: R.Tensor[_, _] = R.log(x)
\t\tlv1: R.Tensor[_, _] = R.flatten(lv0)
\t\tlv2: R.Tensor[(m,), "f32"] = R.match_shape(lv1, (m,))
\t\tgv0: R.Tensor[(m,), "f32"] = R.exp(lv2)
\t\tR.outputs(gv0)
    return gv0
"""


def test_computation_without_shapes_comes_back_by_a_match() -> None:
    module = read(WITHOUT_SHAPES)

    function = module["shape_example"]
    assert isinstance(function, Function)
    infos = {b.var.name: str(b.var.struct_info) for b in bindings_of(function.body)}
    assert infos == {
        "lv0": "R.Tensor()",
        "lv1": "R.Tensor(ndim=1)",
        "lv2": 'R.Tensor((m,), "float32")',
        "gv0": 'R.Tensor((m,), "float32")',
    }
    for x in (np.float32(3), abs(floats(4)) + 1, abs(floats(2, 3, 1)) + 1):
        for vm in machines(module):
            result = vm["shape_example"](np.asarray(x))
            np.testing.assert_allclose(result, np.reshape(x, -1), rtol=1e-5)


def test_a_dtype_that_a_match_claims_is_checked() -> None:
    expected = (
        'shape_example: match_cast lv2: expected R.Tensor((m,), "float32"), '
        'got R.Tensor((4,), "float64")'
    )

    for vm in machines(read(WITHOUT_SHAPES)):
        with pytest.raises(RunError) as refused:
            vm["shape_example"](np.ones((2, 2)))

        assert str(refused.value) == expected


# --- refinement ---------------------------------------------------------------------------

BEFORE_AND_AFTER = """
from tvm.script import relax as R

@R.function
def before(x: R.Tensor[_, _], y: R.Tensor[(m, n), "f32"]):
    with R.dataflow():
\t\t# computation without shape
\t\tlv0: R.Tensor[_, _] = R.log(x)
\t\tgv0: R.Tensor[(m, n), "f32"] = R.ewise_add(lv0, y)
\t\tR.outputs(gv0)
    return gv0

@R.function
def after(x: R.Tensor[(m, n), "f32"], y: R.Tensor[(m, n), "f32"]):
    with R.dataflow():
\t\t# computation without shape
\t\tlv0: R.Tensor[(m, n), "f32"] = R.log(x)
\t\tgv0: R.Tensor[(m, n), "f32"] = R.ewise_add(lv0, y)
\t\tR.outputs(gv0)
    return gv0
"""


def test_a_use_without_broadcast_gives_an_operand_its_shape_and_dtype() -> None:
    module = read(BEFORE_AND_AFTER)

    refined = refine_shapes(module)

    before, after = IRModule({"f": refined["before"]}), IRModule({"f": module["after"]})
    assert_structural_equal(before, after)
    assert_structural_equal(IRModule({"f": refined["after"]}), after)


@pytest.mark.parametrize("name", ["before", "after"])
def test_both_functions_compute_the_same(name: str) -> None:
    x, y = abs(floats(2, 3)) + 1, floats(2, 3)
    module = read(BEFORE_AND_AFTER)

    results = [vm[name](x, y) for part in (module, refine_shapes(module)) for vm in machines(part)]

    for result in results:
        np.testing.assert_allclose(result, np.log(x) + y, rtol=1e-5, atol=1e-6)
