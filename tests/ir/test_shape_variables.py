"""Shapes computed by a function of the block: passes and the optimizer rename them everywhere."""

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, optimize, parse
from relax_egraph.ir.expr import Constant, ShapeExpr, Var
from relax_egraph.ir.shape_variables import with_shapes
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.to_non_dataflow import to_non_dataflow

OPAQUE = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    with R.dataflow():
        s = R.call_pure_packed("half", R.shape([n]), sinfo_args=R.Shape(ndim=1))
        a = R.call_dps_packed("head", (x,), out_sinfo=R.Tensor(s, "float32"))
        b = R.call_dps_packed("head", (a,), out_sinfo=(R.Tensor(s, "float32"), R.Tensor(s, "int8")))
        c: R.Tensor(s, "float32") = b[0]
        d: R.Tensor(s, "float32") = R.exp(c)
        R.output(a, d)
    return (a, d)
"""

S, Q = Var("s", ShapeStructInfo()), Var("q", ShapeStructInfo())


@pytest.mark.parametrize(
    ("new", "info"),
    [
        (Q, TensorStructInfo(Q, "int8")),
        (ShapeExpr((2, 3)), tensor((2, 3), "int8")),
        (Constant(np.zeros(2)), TensorStructInfo(None, "int8")),
    ],
)
def test_a_shape_follows_its_variable(new: Var, info: TensorStructInfo) -> None:
    before = TupleStructInfo((ObjectStructInfo(), TensorStructInfo(S, "int8")))

    after = with_shapes(before, {S: new})

    assert after == TupleStructInfo((ObjectStructInfo(), info))


def test_struct_info_without_such_a_shape_is_the_same_object() -> None:
    before = TupleStructInfo((TensorStructInfo(S, "int8"), tensor((2,), "int8")))

    assert with_shapes(before, {Q: S}) is before
    assert with_shapes(before, {}) is before


def test_blocks_made_effectful_and_optimized_stay_well_formed() -> None:
    module = parse(OPAQUE)

    changed = [to_non_dataflow(module), optimize(module)]

    assert list(map(find_ill_formed, changed)) == [[], []]
    assert (
        changed[0].script()
        == """\
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n",), "float32"),
    ) -> R.Tuple(R.Tensor(dtype="float32", ndim=1), R.Tensor(dtype="float32", ndim=1)):
        n = T.int64()
        s: R.Shape(ndim=1) = R.call_pure_packed("half", R.shape([n]), sinfo_args=(R.Shape(ndim=1),))
        a: R.Tensor(s, "float32") = R.call_dps_packed(
            "head", (x,), out_sinfo=R.Tensor(s, "float32")
        )
        b: R.Tuple(R.Tensor(s, "float32"), R.Tensor(s, "int8")) = R.call_dps_packed(
            "head", (a,), out_sinfo=[R.Tensor(s, "float32"), R.Tensor(s, "int8")]
        )
        c: R.Tensor(s, "float32") = b[0]
        d: R.Tensor(s, "float32") = R.exp(c)
        return (a, d)
"""
    )


def test_the_program_computes_the_same_optimized() -> None:
    def head(x: np.ndarray, *outs: np.ndarray) -> None:
        for out in outs:
            out[...] = x[: len(out)]

    def half(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0] // 2,)

    packed = {"half": half, "head": head}
    x = np.arange(7, dtype=np.float32)
    module = parse(OPAQUE)

    results = [VirtualMachine(build(m), packed)["main"](x) for m in (module, optimize(module))]

    for a, d in results:
        np.testing.assert_array_equal(a, x[:3])
        np.testing.assert_allclose(d, np.exp(x[:3]), rtol=1e-6)
