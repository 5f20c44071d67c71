"""Product and sum fused: by a pass over the model, and by a rule."""

import re

import numpy as np
import pytest

from relax_egraph import IRModule, explain, optimize, rules
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import (
    PassContext,
    Sequential,
    canonicalize_bindings,
    fold_constant,
    remove_all_unused,
)
from tests.seeds.dense_add_fusion import DenseAddFusor, fuse_dense_add
from tests.seeds.mlp import PARAMS, assert_runs, constants_of, create_model, listing

MODEL = """\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 784), "float32")) -> R.Tensor((1, 10), "float32"):
        with R.dataflow():
            lv: R.Tensor((784, 128), "float32") = R.permute_dims(metadata["relax.expr.Constant"][0])
            lv1: R.Tensor((1, 128), "float32") = R.matmul(x, lv)
            lv2: R.Tensor((1, 128), "float32") = R.add(lv1, metadata["relax.expr.Constant"][1])
            lv3: R.Tensor((1, 128), "float32") = R.nn.relu(lv2)
            lv4: R.Tensor((128, 10), "float32") = R.permute_dims(metadata["relax.expr.Constant"][2])
            lv5: R.Tensor((1, 10), "float32") = R.matmul(lv3, lv4)
            lv6: R.Tensor((1, 10), "float32") = R.add(lv5, metadata["relax.expr.Constant"][3])
            gv: R.Tensor((1, 10), "float32") = lv6
            R.output(gv)
        return gv
"""

FUSED = """\
@I.ir_module
class Module:
    @R.function
    def fused_dense_add0(
        x: R.Tensor((1, 784), "float32"),
        w: R.Tensor((784, 128), "float32"),
        b: R.Tensor((128,), "float32"),
    ) -> R.Tensor((1, 128), "float32"):
        R.func_attr({"primitive": True})
        with R.dataflow():
            lv: R.Tensor((1, 128), "float32") = R.matmul(x, w)
            gv: R.Tensor((1, 128), "float32") = R.add(lv, b)
            R.output(gv)
        return gv

    @R.function
    def fused_dense_add1(
        x: R.Tensor((1, 128), "float32"),
        w: R.Tensor((128, 10), "float32"),
        b: R.Tensor((10,), "float32"),
    ) -> R.Tensor((1, 10), "float32"):
        R.func_attr({"primitive": True})
        with R.dataflow():
            lv: R.Tensor((1, 10), "float32") = R.matmul(x, w)
            gv: R.Tensor((1, 10), "float32") = R.add(lv, b)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((1, 784), "float32")) -> R.Tensor((1, 10), "float32"):
        cls = Module
        with R.dataflow():
            lv: R.Tensor((784, 128), "float32") = R.permute_dims(metadata["relax.expr.Constant"][0])
            lv2: R.Tensor((1, 128), "float32") = cls.fused_dense_add0(
                x, lv, metadata["relax.expr.Constant"][1]
            )
            lv3: R.Tensor((1, 128), "float32") = R.nn.relu(lv2)
            lv4: R.Tensor((128, 10), "float32") = R.permute_dims(metadata["relax.expr.Constant"][2])
            lv6: R.Tensor((1, 10), "float32") = cls.fused_dense_add1(
                lv3, lv4, metadata["relax.expr.Constant"][3]
            )
            gv: R.Tensor((1, 10), "float32") = lv6
            R.output(gv)
        return gv
"""


def test_the_model_prints_as_in_the_document() -> None:
    model = create_model()

    assert model.script() == MODEL
    assert_structural_equal(model, listing("mlp"))
    for found, weight in zip(constants_of(model), PARAMS.values(), strict=True):
        np.testing.assert_array_equal(found, weight, strict=True)


def test_the_fused_model_prints_as_in_the_document() -> None:
    fused = fuse_dense_add(create_model())

    assert fused.script() == FUSED
    assert_well_formed(fused)
    assert_structural_equal(fused, listing("mlp_fused"))


@pytest.mark.parametrize("name", ["mlp", "mlp_fused"])
def test_the_listings_run_as_they_are_and_optimized(name: str) -> None:
    module = listing(name)

    assert_runs(module)
    assert_runs(optimize(module))


def test_what_is_built_by_hand_runs_before_and_after_fusion() -> None:
    assert_runs(create_model())
    assert_runs(fuse_dense_add(create_model()))


def test_nothing_is_fused_twice() -> None:
    fused = fuse_dense_add(create_model())

    assert DenseAddFusor(fused).transform() is fused


def test_the_wrapper_is_a_pass_of_level_2() -> None:
    assert (fuse_dense_add.name, fuse_dense_add.opt_level) == ("DenseAddFuse", 2)

    model, pipeline = create_model(), Sequential((fuse_dense_add,))
    with PassContext(opt_level=1):
        assert pipeline(model) is model
    with PassContext(opt_level=2):
        assert list(pipeline(model).functions) == ["fused_dense_add0", "fused_dense_add1", "main"]


# --- the rule -------------------------------------------------------------------------------

DENSE_ADD = """
; x·w + b by one kernel, which is given b as it was before its broadcast
(rewrite (R.add (R.matmul x w) (R.broadcast_to b s))
         (K.store (K.add (K.matmul (K.load x) (K.load w)) (K.broadcast_to (K.load b) s)))
  :name "dense-add")
"""


def simplified(module: IRModule) -> IRModule:
    """What `optimize` does after the e-graph, and no binding that only renames."""
    return canonicalize_bindings(remove_all_unused(fold_constant(module)))


NAMES = {
    "@R.function(private=True)": "@R.function",
    "fused_matmul_add(": "fused_dense_add0(",
    "fused_matmul_add1(": "fused_dense_add1(",
    'lv3: R.Tensor((1, 128), "float32"),': 'x: R.Tensor((1, 128), "float32"),',
    "R.matmul(lv3, w)": "R.matmul(x, w)",
    "w1: ": "b: ",
    "w1)": "b)",
}
"""What the e-graph calls things, and `DenseAddFusor`."""


def renamed(module: IRModule) -> str:
    """The text with the names of the pass, and without what extraction promises."""
    text = re.sub(r', "anchor": "\w+", "seconds": [^}]*', "", module.script())
    for ours, theirs in NAMES.items():
        text = text.replace(ours, theirs)
    return text


def test_the_rule_alone_makes_the_same_functions() -> None:
    """The order of the phases is the difference.

    The rule says that sum and kernel are equal; both stay, and extraction takes the cheaper one.
    What is constant, as the transposed weights are, is free to it and computed at once.
    """
    explained = explain(create_model(), [DENSE_ADD], without=rules.FAMILIES)

    assert explained.rules == {"dense-add": 2}
    expected = simplified(fuse_dense_add(create_model()))
    assert renamed(explained.module) == expected.script()
    for a, b in zip(constants_of(explained.module), constants_of(expected), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    assert_runs(explained.module)


def test_the_rule_book_fuses_the_activation_too() -> None:
    """One equation, that what is stored and loaded is what was stored, fuses any kernels."""
    best = optimize(create_model())

    assert (
        best.script()
        == """\
@I.ir_module
class Module:
    @R.function(private=True)
    def fused_matmul_add_relu(
        x: R.Tensor((1, 784), "float32"),
        w: R.Tensor((784, 128), "float32"),
        w1: R.Tensor((1, 128), "float32"),
    ) -> R.Tensor((1, 128), "float32"):
        R.func_attr({"primitive": True, "anchor": "matmul", "seconds": 6.74e-06})
        with R.dataflow():
            lv: R.Tensor((1, 128), "float32") = R.matmul(x, w)
            lv1: R.Tensor((1, 128), "float32") = R.add(lv, w1)
            gv: R.Tensor((1, 128), "float32") = R.nn.relu(lv1)
            R.output(gv)
        return gv

    @R.function(private=True)
    def fused_matmul_add(
        lv3: R.Tensor((1, 128), "float32"),
        w: R.Tensor((128, 10), "float32"),
        w1: R.Tensor((1, 10), "float32"),
    ) -> R.Tensor((1, 10), "float32"):
        R.func_attr({"primitive": True, "anchor": "matmul", "seconds": 1.67e-06})
        with R.dataflow():
            lv: R.Tensor((1, 10), "float32") = R.matmul(lv3, w)
            gv: R.Tensor((1, 10), "float32") = R.add(lv, w1)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((1, 784), "float32")) -> R.Tensor((1, 10), "float32"):
        cls = Module
        with R.dataflow():
            lv3: R.Tensor((1, 128), "float32") = cls.fused_matmul_add_relu(
                x, metadata["relax.expr.Constant"][0], metadata["relax.expr.Constant"][1]
            )
            gv: R.Tensor((1, 10), "float32") = cls.fused_matmul_add(
                lv3, metadata["relax.expr.Constant"][2], metadata["relax.expr.Constant"][3]
            )
            R.output(gv)
        return gv
"""
    )
    assert_runs(best)
