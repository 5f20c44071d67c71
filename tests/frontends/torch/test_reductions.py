"""Reductions, scans and sorts of torch."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.agreement import assert_agrees  # noqa: E402

ROWS = [[3.0, -1.0, 3.0, 0.5], [float("nan"), 2.0, 1.0, 2.0], [-4.0, -4.0, -5.0, -0.5]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.amax(1), x.amin(()), x.max(), x.min(0, keepdim=True)),
        lambda x: (x.argmax(), x.argmin(1), x.argmax(0, keepdim=True)),
        lambda x: (x.max(1), torch.any(x > 2, 0), torch.all(x.isnan(), (0, 1))),
        lambda x: (x.var(1), x.std(0, correction=3), torch.var_mean(x, 0, correction=0)),
        lambda x: (x.nan_to_num().prod(1), x.sum((0, 1), keepdim=True), x.mean()),
        lambda x: (torch.cummax(x, 1), torch.cummin(x, 0), torch.logcumsumexp(x, 1)),
        lambda x: (torch.softmax(x, 0), torch.log_softmax(x, -1)),
    ],
)
def test_of_rows(function: Callable[[Any], Any]) -> None:
    """NaN is the greatest and the least; the first index is that of the result."""
    assert_agrees(function, torch.tensor(ROWS))


def test_of_integers() -> None:
    """Sums, products and scans of integers and booleans are of int64."""
    x = torch.tensor([[100, 27, -5], [3, 100, 1]], dtype=torch.int8)
    assert_agrees(lambda x: (x.sum(), x.prod(1), x.cumsum(0), x.cumprod(1), x.amax(0)), x)
    assert_agrees(lambda b: (b.sum(1), b.cumsum(0), b.amax(1), b.max(1)[0], b.all()), x > 3)
    assert_agrees(lambda x: torch.sum(x, 0, dtype=torch.float32), x)


def test_of_scalars_and_of_nothing() -> None:
    """A tensor of rank 0 has an axis; sums of nothing are 0, means of nothing NaN."""
    x = torch.tensor(2.5)
    assert_agrees(lambda x: (x.sum(0), x.mean(), x.amax(0), x.cumsum(0), x.argmax(), x.max(0)), x)
    assert_agrees(lambda x: (x.sort(), x.topk(1), x.softmax(0), x.any(-1), x.var(correction=0)), x)
    empty = torch.zeros(0, 3)
    assert_agrees(lambda x: (x.sum(0), x.mean(0), x.prod(), x.any(1), x.all(0), x.cumsum(0)), empty)


@pytest.mark.parametrize("descending", [False, True])
def test_order(descending: bool) -> None:
    """Stable, with NaN as the greatest number."""
    x = torch.tensor(ROWS)
    assert_agrees(lambda x: torch.sort(x, dim=1, stable=True, descending=descending), x)
    assert_agrees(lambda x: torch.sort(x > 0, dim=0, stable=True, descending=descending), x)
    y = torch.tensor([[5.0, float("nan"), 3.0, 9.0]])
    assert_agrees(lambda y: torch.topk(y, 3, dim=1, largest=descending), y)


def test_of_the_middle() -> None:
    """A median is the lower of two, and NaN where an element is; the k-th least has NaN last."""
    x = torch.tensor(ROWS)
    assert_agrees(lambda x: (torch.median(x), torch.median(x, 0), torch.kthvalue(x, 1, 1)), x)
    assert_agrees(lambda x: torch.kthvalue(x, 4, 1)[0], x)


@pytest.mark.parametrize("size", [2, 6])
def test_sizes_known_late(size: int) -> None:
    """A count is a size of the operand."""

    def function(x: Any) -> Any:
        return x.var(0), x.mean(0), x.sort(0, descending=True), x.argmax(), x.topk(2, 0)

    sized = {0: torch.export.Dim("n", min=2, max=64)}
    rows = torch.linspace(-1, 1, 3 * size).sin().reshape(size, 3)
    assert_agrees(function, torch.randn(4, 3), dynamic=sized, late=(rows,))


def test_of_the_middle_numbers_and_the_most_frequent() -> None:
    nan = float("nan")
    x = torch.tensor([[3.0, nan, 1.0, 1.0, 2.0], [nan] * 5, [2.0, 2.0, 5.0, 5.0, 7.0]])
    for dim in (0, 1):
        assert_agrees(lambda x, dim=dim: x.nanmedian(dim).values, x)
    assert_agrees(torch.nanmedian, x)
    assert_agrees(lambda x: x[::2].mode(1, keepdim=True).values, x)
    assert_agrees(lambda x: x.mode(0).values, (x > 2).int())
