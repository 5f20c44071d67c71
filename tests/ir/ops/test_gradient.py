"""The gradients of `R.grad` are the derivatives of their operators."""

from random import Random
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.expr import Call, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import tensor
from tests.support.ops.case import Case, Draw
from tests.support.ops.gradient import SAMPLERS

FORWARD = {
    "grad.nll_loss_backward": "nn.nll_loss",
    "grad.max_pool2d_backward": "nn.max_pool2d",
    "grad.avg_pool2d_backward": "nn.avg_pool2d",
    "grad.take_backward": "take",
}
STEP = 1e-5


def doubles(case: Case) -> list[Any]:
    """The operands, floats as float64."""
    kinds = [o.dtype.kind if isinstance(o, np.ndarray) else "" for o in case.operands]
    wide = zip(case.operands, kinds, strict=True)
    return [o if kind in "iu" else o.astype(np.float64) for o, kind in wide]


@pytest.mark.parametrize("name", FORWARD)
def test_a_gradient_is_the_derivative(name: str) -> None:
    random = Random(name)
    for _ in range(10):
        case = SAMPLERS[name](Draw(random))
        gradient, x, *others = doubles(case)
        direction = np.random.default_rng(0).standard_normal(x.shape)
        ends = [
            apply_op(OPS[FORWARD[name]], [x + step * direction, *others], case.attrs)
            for step in (STEP, -STEP)
        ]
        if not all(np.isfinite(end).all() for end in ends):
            continue  # a window without elements
        slope = np.sum((np.asarray(ends[0]) - np.asarray(ends[1])) * gradient) / (2 * STEP)

        result = apply_op(OPS[name], [gradient, x, *others], case.attrs)

        assert np.sum(np.asarray(result) * direction) == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    ("values", "place"),
    [([-np.inf] * 4, 0), ([np.inf, np.nan, 1, np.nan], 1), ([1, 3, 3, 2], 1)],
    ids=["of -inf, beside padding", "of a NaN after inf", "of two"],
)
def test_the_gradient_of_a_maximum_goes_to_its_first_element(
    values: list[float], place: int
) -> None:
    x = np.array(values, np.float32).reshape(1, 1, 2, 2)
    attrs = {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1)}
    gradient = np.ones((1, 1, 1, 1), np.float32)

    result = apply_op(OPS["grad.max_pool2d_backward"], [gradient, x], attrs)

    assert np.ravel(result).tolist() == [float(k == place) for k in range(4)]


def test_a_gradient_has_the_shape_of_the_result() -> None:
    operands = [tensor((2, 3), "float32"), tensor((4, 3), "float32"), tensor((3,), "int64")]
    call = Call(
        OPS["grad.take_backward"],
        tuple(Var(f"x{k}", info) for k, info in enumerate(operands)),
        {"axis": 0},
    )

    with pytest.raises(IllTyped, match=r"the gradient is R.Tensor\(\(2, 3\), \"float32\"\), needs"):
        infer(call)


def test_an_axis_is_counted_from_the_last_one_of_the_tensor_that_was_taken_from() -> None:
    text = """
@R.function
def main(
    g: R.Tensor((3, 2, 2), "float32"), x: R.Tensor((4, 2), "float32"), i: R.Tensor((3, 2), "int64")
):
    with R.dataflow():
        taken = R.grad.take_backward(g, x, i, axis=-2)
        R.output(taken)
    return taken
"""
    gradient = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    inputs = (gradient, np.zeros((4, 2), np.float32), np.array([[0, 1], [1, 3], [0, 0]]))
    module = rx.parse(text)

    result = rx.VirtualMachine(rx.build(rx.optimize(module)))["main"](*inputs)

    expected = np.zeros((4, 2), np.float32)
    np.add.at(expected, inputs[2], gradient)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_a_gradient_of_a_pool_is_not_repeated(kind: str) -> None:
    data, gradient = np.zeros((1, 1, 4, 3), np.float32), np.zeros((1, 1, 4, 1), np.float32)

    with pytest.raises(RunError, match="the gradient"):
        apply_op(OPS[f"grad.{kind}_pool2d_backward"], [gradient, data], {"pool_size": (1, 1)})


def test_a_gradient_of_another_rank_is_refused() -> None:
    operands = (tensor(None, "float32", 1), tensor((4, 3), "float32"), tensor((3,), "int64"))
    values = tuple(Var(f"x{k}", info) for k, info in enumerate(operands))

    with pytest.raises(IllTyped, match=r"the gradient is .*ndim=1.*, needs .*\(3, 3\)"):
        infer(Call(OPS["grad.take_backward"], values, {"axis": 0}))
