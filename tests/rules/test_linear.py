"""``R.linear``: one name for several operators."""

import pytest

from relax_egraph import BlockBuilder, parse
from relax_egraph.errors import ScriptError
from relax_egraph.ir import Var, linear, symbol, tensor
from relax_egraph.ir.structural import assert_structural_equal

TEXT = """
@R.function
def main(
    x: R.Tensor(("n", 4), "float32"), w: R.Tensor((3, 4), "float32"), b: R.Tensor((3,), "float32")
):
    with R.dataflow():
        {}
        R.output(gv)
    return gv
"""
WRITTEN_OUT = """lv = R.permute_dims(w)
        lv1 = R.matmul(x, lv)
        gv = R.add(lv1, b)"""


def test_a_script_writes_it_by_its_name() -> None:
    module = parse(TEXT.format("gv = R.linear(x, w, bias=b)"))

    assert_structural_equal(module, parse(TEXT.format(WRITTEN_OUT)))


def test_a_builder_binds_its_parts() -> None:
    x = Var("x", tensor((symbol("n"), 4), "float32"))
    w, b = Var("w", tensor((3, 4), "float32")), Var("b", tensor((3,), "float32"))
    bb = BlockBuilder()
    with bb.function("main", [x, w, b]):
        with bb.dataflow():
            gv = bb.emit_output(linear(x, w, b))
        bb.emit_func_output(gv)

    assert_structural_equal(bb.get(), parse(TEXT.format(WRITTEN_OUT)))


def test_without_a_bias_it_is_a_product() -> None:
    module = parse(TEXT.format("gv = R.linear(x, w)"))

    assert_structural_equal(
        module, parse(TEXT.format("lv = R.permute_dims(w)\n        gv = R.matmul(x, lv)"))
    )


def test_it_needs_a_weight() -> None:
    with pytest.raises(ScriptError) as refused:
        parse(TEXT.format("gv = R.linear(x)"))

    assert str(refused.value) == (
        "<script>:7:14: R.linear takes data, a weight, and perhaps a bias\n"
        "            gv = R.linear(x)\n"
        "                 ^"
    )
