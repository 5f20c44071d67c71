"""Losses and dropout: numbers, edges, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Expr
from relax_egraph.ir.struct_info import StructInfo, tensor
from tests.support.applied import both, compiled, computed, f32, inferred, of, refusal
from tests.support.legalized import static

n = dims.symbol("n")
NAN = np.nan


def test_dropout_gives_what_it_gets_and_a_mask_of_ones() -> None:
    x = f32([[1, NAN], [np.inf, -2]])

    for out, mask in both("nn.dropout", x, rate=0.9):
        np.testing.assert_array_equal(out, x, strict=True)
        np.testing.assert_array_equal(mask, np.ones_like(x), strict=True)


@pytest.mark.parametrize(
    ("predictions", "labels", "expected"),
    [
        ([[1, 2], [3, 4]], [[1, 0], [0.5, 0.5]], -2.25),
        ([1, 2, 3], [1, 1, 1], -6),
        (2, 3, -6),
        (np.zeros((0, 3)), np.zeros((0, 3)), NAN),
    ],
)
def test_cross_entropy_is_divided_by_the_batch(
    predictions: Any, labels: Any, expected: float
) -> None:
    for result in both("nn.cross_entropy_with_logits", f32(predictions), f32(labels)):
        np.testing.assert_allclose(result, f32(expected), rtol=1e-6, strict=True)


LOGS = f32([[-1, -2, -3], [-4, -5, -6]])
TARGETS = np.array([2, 1])
WEIGHTS = f32(0.5, 2, 1)


@pytest.mark.parametrize(
    ("operands", "attrs", "expected"),
    [
        ((LOGS, TARGETS), {"reduction": "none"}, [3, 5]),
        ((LOGS, TARGETS), {"reduction": "sum"}, 8),
        ((LOGS, TARGETS), {}, 4),
        ((LOGS, TARGETS, WEIGHTS), {"reduction": "none"}, [3, 10]),
        ((LOGS, TARGETS, WEIGHTS), {}, 13 / 3),
        ((LOGS, TARGETS, WEIGHTS), {"ignore_index": 2}, 5),
        ((LOGS, np.array([-100, 0], np.int16)), {"reduction": "none"}, [0, 4]),
        ((LOGS, np.array([-100, -100], np.int16)), {}, NAN),
        ((LOGS, np.array([-7, 7])), {"reduction": "none"}, [1, 6]),
        ((LOGS[0], np.array(1, np.uint8)), {"reduction": "none"}, 2),
        ((LOGS.reshape(1, 2, 3), np.array([[0, 1, 0]])), {"reduction": "none"}, [[1, 5, 3]]),
        ((f32([[np.inf, NAN]]), np.array([-100])), {"reduction": "sum"}, 0),
    ],
)
def test_a_loss_is_the_weighted_prediction_of_the_target(
    operands: tuple[Any, ...], attrs: dict[str, Attr], expected: Any
) -> None:
    reference, at_run_time = both("nn.nll_loss", *operands, **attrs)
    loops = compiled("nn.nll_loss", *operands, known=static, **attrs)

    for result in (reference, at_run_time, loops):
        np.testing.assert_allclose(result, f32(expected), rtol=1e-6, strict=True)


LOSSES = of(2, 3)
SAID = 'R.nn.nll_loss of R.Tensor((2, 3), "float32"), '
INDICES = of(2, dtype="int64")
SAID_INDICES = f'{SAID}R.Tensor((2,), "int64")'

REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    (
        "nn.dropout",
        (LOSSES,),
        {"rate": 1.5},
        'R.nn.dropout of R.Tensor((2, 3), "float32"): rate is 1.5, needs 0 to 1',
    ),
    (
        "nn.cross_entropy_with_logits",
        (LOSSES, of(n, 2)),
        {},
        'R.nn.cross_entropy_with_logits of R.Tensor((2, 3), "float32"), '
        'R.Tensor((n, 2), "float32"): labels has shape (n, 2), needs (2, 3)',
    ),
    (
        "nn.nll_loss",
        (LOSSES, of(2)),
        {},
        f'{SAID}R.Tensor((2,), "float32"): needs targets that are integers',
    ),
    (
        "nn.nll_loss",
        (LOSSES, of(3, dtype="int8")),
        {},
        f'{SAID}R.Tensor((3,), "int8"): targets has shape (3,), needs (2,)',
    ),
    (
        "nn.nll_loss",
        (LOSSES, of(dtype="int8")),
        {},
        f'{SAID}R.Tensor((), "int8"): targets has rank 0, needs 1',
    ),
    (
        "nn.nll_loss",
        (of(), of(dtype="int8")),
        {},
        'R.nn.nll_loss of R.Tensor((), "float32"), R.Tensor((), "int8"): '
        "predictions has rank 0, needs 1 or more",
    ),
    (
        "nn.nll_loss",
        (LOSSES, INDICES, of(2)),
        {},
        f'{SAID_INDICES}, R.Tensor((2,), "float32"): weights has shape (2,), needs (3,)',
    ),
    (
        "nn.nll_loss",
        (LOSSES, INDICES),
        {"reduction": "max"},
        f'{SAID_INDICES}: reduction is \'max\', needs "mean", "sum" or "none"',
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_ill_typed_losses_are_refused(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    assert refusal(name, *args, **attrs) == message


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("none", tensor((n, 5), "float32")), ("mean", tensor((), "float32"))],
)
def test_a_symbolic_loss_has_a_number_for_each_target(reduction: str, expected: StructInfo) -> None:
    info = inferred("nn.nll_loss", of(n, 3, 5), of(n, 5, dtype="int64"), reduction=reduction)

    assert info == expected


def test_a_target_without_classes_is_refused_at_run_time() -> None:
    with pytest.raises(RunError) as refused:
        computed("nn.nll_loss", np.zeros((1, 0), np.float32), np.zeros(1, np.int64))

    assert str(refused.value) == (
        'R.nn.nll_loss of R.Tensor((1, 0), "float32"), R.Tensor((1,), "int64"): '
        "there are no classes to choose of"
    )
