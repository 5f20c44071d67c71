"""Normalisations: numbers, edges, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Expr
from relax_egraph.ir.struct_info import TupleStructInfo, tensor
from tests.support.applied import both, computed, f32, inferred, of, refusal

n = dims.symbol("n")
NAN = np.nan


def test_log_softmax_of_far_apart_and_of_masked_elements_is_exact() -> None:
    x = f32([[0, 0], [1000, 0], [-np.inf, 1]])

    for result in both("nn.log_softmax", x):
        expected = f32([[-np.log(2)] * 2, [0, -1000], [-np.inf, 0]])
        np.testing.assert_allclose(result, expected, rtol=1e-6, strict=True)


def test_layer_norm_is_over_all_its_axes_and_takes_parameters_in_their_order() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    gamma, beta = np.arange(8, dtype=np.float32).reshape(4, 2), np.ones((4, 2), np.float32)
    mean, var = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
    expected = (x - mean) / np.sqrt(var + 1e-5) * gamma.T[:, None, :] + 1

    for result in both("nn.layer_norm", x, gamma, beta, axes=(-1, 0)):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5, strict=True)


def test_a_switched_off_parameter_does_not_count() -> None:
    x, nothing = f32(1, 3), f32(NAN, NAN)

    for result in both(
        "nn.layer_norm", x, nothing, nothing, axes=-1, epsilon=0.0, center=False, scale=False
    ):
        np.testing.assert_array_equal(result, f32(-1, 1), strict=True)


def test_layer_norm_of_a_large_mean_keeps_its_digits() -> None:
    x = f32(1e4 - 1, 1e4 + 1)

    for result in both("nn.layer_norm", x, f32(1, 1), f32(0, 0), axes=-1, epsilon=0.0):
        np.testing.assert_allclose(result, f32(-1, 1), rtol=1e-6, strict=True)


def test_rms_norm_divides_by_the_root_of_the_mean_of_squares() -> None:
    x = f32([[3, 4], [0, 0]])

    for result in both("nn.rms_norm", x, f32(1, 2), epsilon=12.5):
        np.testing.assert_allclose(result, f32([[0.6, 1.6], [0, 0]]), rtol=1e-6, strict=True)


def test_group_norm_takes_neighbouring_channels_together() -> None:
    x = f32([[[0], [2], [10], [30]]])
    attrs: dict[str, Attr] = {"num_groups": 2, "channel_axis": 1, "axes": (2,), "epsilon": 0.0}

    for result in both("nn.group_norm", x, f32(1, 1, 1, 2), f32(0, 0, 5, 0), **attrs):
        expected = f32([[[-1], [1], [4], [2]]])
        np.testing.assert_allclose(result, expected, rtol=1e-6, strict=True)


def test_instance_norm_takes_each_channel_by_itself() -> None:
    x = f32([[[0, 2], [10, 30]]])
    attrs: dict[str, Attr] = {"channel_axis": 1, "axes": (2,), "epsilon": 0.0}

    for result in both("nn.instance_norm", x, f32(1, 3), f32(0, 5), **attrs):
        expected = f32([[[-1, 1], [2, 8]]])
        np.testing.assert_allclose(result, expected, rtol=1e-6, strict=True)


X = f32([[0, 10], [2, 30]])
PARAMETERS = (f32(1, 3), f32(0, 5), f32(4, 8), f32(16, 4))


def assert_each_close(results: Any, expected: tuple[Any, ...]) -> None:
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-6, strict=True)


def test_batch_norm_in_training_moves_the_moving_statistics() -> None:
    expected = (f32([[-1, 2], [1, 8]]), f32(3.25, 11), f32(12.25, 28))

    for results in both("nn.batch_norm", X, *PARAMETERS, epsilon=0.0, momentum=0.25):
        assert_each_close(results, expected)


def test_batch_norm_at_inference_uses_the_moving_statistics_and_keeps_them() -> None:
    expected = (f32([[-1, 8], [-0.5, 38]]), f32(4, 8), f32(16, 4))

    for results in both("nn.batch_norm", X, *PARAMETERS, epsilon=0.0, training=False):
        assert_each_close(results, expected)


def test_the_statistics_of_an_empty_batch_are_nan() -> None:
    empty = np.zeros((0, 2), np.float32)
    expected = (empty, f32(NAN, NAN), f32(NAN, NAN))

    for results in both("nn.batch_norm", empty, *PARAMETERS):
        assert_each_close(results, expected)


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("nn.layer_norm", {"axes": -1}),
        ("nn.instance_norm", {"axes": -1, "channel_axis": 0}),
        ("nn.group_norm", {"axes": -1, "channel_axis": 0, "num_groups": 2}),
    ],
)
def test_a_nan_makes_its_own_set_nan_and_no_other(name: str, attrs: dict[str, Attr]) -> None:
    x = f32([[NAN, 1], [1, 3]])

    for result in both(name, x, f32(1, 1), f32(0, 0), **attrs):
        np.testing.assert_allclose(result, f32([[NAN, NAN], [-1, 1]]), rtol=1e-4, strict=True)


def test_a_parameter_that_does_not_fit_is_refused_at_run_time() -> None:
    with pytest.raises(RunError) as refused:
        computed("nn.rms_norm", f32([[1, 2]]), f32([1]))

    assert str(refused.value) == (
        'R.nn.rms_norm of R.Tensor((1, 2), "float32"), R.Tensor((1,), "float32"): '
        "weight has shape (1,), needs (2,)"
    )


DATA, C3 = of(2, 3), of(3)
GROUPS: dict[str, Attr] = {"num_groups": 2, "channel_axis": 1, "axes": 0}
LONG = 'R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")'

REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    (
        "nn.log_softmax",
        (of(2, dtype="int8"),),
        {},
        'R.nn.log_softmax of R.Tensor((2,), "int8"): needs a floating-point tensor',
    ),
    (
        "nn.log_softmax",
        (DATA,),
        {"axis": 2},
        'R.nn.log_softmax of R.Tensor((2, 3), "float32"): axis 2 is outside of rank 2',
    ),
    (
        "nn.layer_norm",
        (DATA, C3, of(2)),
        {"axes": 1},
        f'R.nn.layer_norm of {LONG}, R.Tensor((2,), "float32"): beta has shape (2,), needs (3,)',
    ),
    (
        "nn.layer_norm",
        (DATA, C3, C3),
        {"axes": (0, 1)},
        f'R.nn.layer_norm of {LONG}, R.Tensor((3,), "float32"): gamma has rank 1, needs 2',
    ),
    (
        "nn.rms_norm",
        (DATA, of(3, dtype="float64")),
        {},
        'R.nn.rms_norm of R.Tensor((2, 3), "float32"), R.Tensor((3,), "float64"): '
        "needs operands of one dtype",
    ),
    (
        "nn.rms_norm",
        (DATA, C3),
        {"axes": (0, -2)},
        'R.nn.rms_norm of R.Tensor((2, 3), "float32"): axes [0, -2] repeat an axis',
    ),
    (
        "nn.rms_norm",
        (of(2, 3, dtype="int32"), of(3, dtype="int32")),
        {},
        'R.nn.rms_norm of R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32"): '
        "needs floating-point tensors",
    ),
    (
        "nn.group_norm",
        (DATA, C3, C3),
        GROUPS,
        f'R.nn.group_norm of {LONG}, R.Tensor((3,), "float32"): '
        "3 channels are not divided by num_groups 2",
    ),
    (
        "nn.group_norm",
        (DATA, C3, C3),
        {**GROUPS, "num_groups": 0},
        f'R.nn.group_norm of {LONG}, R.Tensor((3,), "float32"): num_groups is 0, needs at least 1',
    ),
    (
        "nn.instance_norm",
        (DATA, C3, C3),
        {"channel_axis": -1, "axes": (0, 1)},
        f'R.nn.instance_norm of {LONG}, R.Tensor((3,), "float32"): '
        "axes [0, 1] have the channel axis -1",
    ),
    (
        "nn.batch_norm",
        (DATA, C3, C3, C3, of(n, 3)),
        {},
        f'R.nn.batch_norm of {LONG}, R.Tensor((3,), "float32"), R.Tensor((3,), "float32"), '
        'R.Tensor((n, 3), "float32"): moving_var has rank 2, needs 1',
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_ill_typed_normalisations_are_refused(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    assert refusal(name, *args, **attrs) == message


def test_symbolic_statistics_have_the_extent_of_the_channels() -> None:
    args = (of(4, n), *(of(n) for _ in range(4)))

    info = inferred("nn.batch_norm", *args)

    vector = tensor((n,), "float32")
    assert info == TupleStructInfo((tensor((4, n), "float32"), vector, vector))
