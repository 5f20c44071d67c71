"""What later uses tell of shapes and dtypes."""

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.refine_shapes import refine_shapes

MODULE = "@I.ir_module\nclass Module:\n"


def assert_refined(before: str, after: str) -> None:
    refined = refine_shapes(parse(MODULE + before))

    assert_structural_equal(refined, parse(MODULE + after))
    assert find_ill_formed(refined) == []
    assert_structural_equal(refine_shapes(refined), refined)


def test_an_operand_that_does_not_broadcast_has_the_shape_of_the_other() -> None:
    assert_refined(
        """
    @R.function
    def main(x: R.Tensor, y: R.Tensor(("m", "n"), "float32")):
        with R.dataflow():
            lv0 = R.log(x)
            gv0 = R.ewise_add(lv0, y)
            R.output(gv0)
        return gv0
""",
        """
    @R.function
    def main(x: R.Tensor(("m", "n"), "float32"), y: R.Tensor(("m", "n"), "float32")):
        with R.dataflow():
            lv0 = R.log(x)
            gv0 = R.ewise_add(lv0, y)
            R.output(gv0)
        return gv0
""",
    )


def test_an_operand_that_may_broadcast_gets_the_dtype_alone() -> None:
    assert_refined(
        """
    @R.function
    def main(x: R.Tensor, y: R.Tensor(("m", "n"), "float32")):
        with R.dataflow():
            lv0 = R.log(x)
            gv0 = R.add(lv0, y)
            R.output(gv0)
        return gv0
""",
        """
    @R.function
    def main(x: R.Tensor(dtype="float32"), y: R.Tensor(("m", "n"), "float32")):
        with R.dataflow():
            lv0 = R.log(x)
            gv0 = R.add(lv0, y)
            R.output(gv0)
        return gv0
""",
    )


def test_movement_is_undone() -> None:
    assert_refined(
        """
    @R.function
    def main(x: R.Tensor(dtype="float32"), y: R.Tensor((1, "m", "n"), "float32")):
        with R.dataflow():
            lv0 = R.permute_dims(x, axes=[1, 0])
            lv1 = R.expand_dims(lv0, axis=[0])
            gv0 = R.ewise_add(lv1, y)
            R.output(gv0)
        return gv0
""",
        """
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor((1, "m", "n"), "float32")):
        with R.dataflow():
            lv0 = R.permute_dims(x, axes=[1, 0])
            lv1 = R.expand_dims(lv0, axis=[0])
            gv0 = R.ewise_add(lv1, y)
            R.output(gv0)
        return gv0
""",
    )


def test_what_a_packed_function_returns_is_checked_where_its_use_needs_more() -> None:
    assert_refined(
        """
    @R.function
    def main(y: R.Tensor(("m", "n"), "float32")):
        with R.dataflow():
            a = R.call_pure_packed("f", y, sinfo_args=R.Tensor)
            gv0 = R.ewise_add(a, y)
            R.output(gv0)
        return gv0
""",
        """
    @R.function
    def main(y: R.Tensor(("m", "n"), "float32")):
        m = T.int64()
        n = T.int64()
        with R.dataflow():
            a = R.call_pure_packed("f", y, sinfo_args=R.Tensor)
            a1 = R.match_cast(a, R.Tensor((m, n), "float32"))
            gv0 = R.ewise_add(a1, y)
            R.output(gv0)
        return gv0
""",
    )


def test_what_is_learned_of_a_function_is_known_where_it_is_called() -> None:
    assert_refined(
        """
    @R.function
    def same(x: R.Tensor, y: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            gv0 = R.ewise_add(x, y)
            R.output(gv0)
        return gv0

    @R.function
    def main(x: R.Tensor, y: R.Tensor((4, 4), "float32")):
        cls = Module
        with R.dataflow():
            gv0 = cls.same(x, y)
            R.output(gv0)
        return gv0
""",
        """
    @R.function
    def same(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            gv0 = R.ewise_add(x, y)
            R.output(gv0)
        return gv0

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        cls = Module
        with R.dataflow():
            gv0 = cls.same(x, y)
            R.output(gv0)
        return gv0
""",
    )


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(
            """
    @R.function(pure=False)
    def main(x: R.Tensor, y: R.Tensor(("m", "n"), "float32")):
        _ = R.call_packed("log", y)
        gv0 = R.ewise_add(x, y)
        return gv0
""",
            id="after an effect",
        ),
        pytest.param(
            """
    @R.function
    def main(x: R.Tensor, y: R.Tensor(("m", "n"), "float32"), c: R.Tensor((), "bool")):
        if c:
            w = R.ewise_add(x, y)
        else:
            w = R.add(y, y)
        return w
""",
            id="within a branch",
        ),
        pytest.param(
            """
    @R.function
    def main(x: R.Tensor, y: R.Tensor):
        n = T.int64()
        with R.dataflow():
            lv0 = R.match_cast(y, R.Tensor((n,), "float32"))
            gv0 = R.ewise_add(x, lv0)
            R.output(gv0)
        return gv0
""",
            id="in symbols that the body binds",
        ),
    ],
)
def test_what_is_not_always_so_on_entry_is_not_learned_of_parameters(before: str) -> None:
    module = parse(MODULE + before)

    refined = refine_shapes(module)

    shapes = [p.struct_info.shape for p in refined["main"].params[:1]]  # pyright: ignore
    assert shapes == [None]


def test_a_refined_function_refuses_on_entry_what_would_have_failed_later() -> None:
    module = parse(
        MODULE
        + """
    @R.function
    def main(x: R.Tensor, y: R.Tensor(("m", "n"), "float32")):
        with R.dataflow():
            lv0 = R.log(x)
            gv0 = R.ewise_add(lv0, y)
            R.output(gv0)
        return gv0
"""
    )
    vm = VirtualMachine(build(refine_shapes(module)))
    x = np.full((2, 3), 2, np.float32)

    np.testing.assert_allclose(vm["main"](x, x), np.log(x) + x, rtol=1e-6)
    with pytest.raises(Exception, match="parameter x"):
        vm["main"](x[0], x)


def test_an_alias_has_the_struct_info_of_its_value() -> None:
    assert_refined(
        """
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        a = R.multiply(x, x)
        p: R.Tensor(dtype="float32", ndim=2) = a
        out = R.add(p, x)
        return out
""",
        """
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        a = R.multiply(x, x)
        p: R.Tensor(("n", 8), "float32") = a
        out = R.add(p, x)
        return out
""",
    )
