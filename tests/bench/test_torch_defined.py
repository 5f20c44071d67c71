"""Results that torch leaves open in part are judged by the rest."""

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bench.torch.defined import difference  # noqa: E402


def _sample(x: Any, *args: Any, **kwargs: Any) -> Any:
    return SimpleNamespace(input=x, args=args, kwargs=kwargs)


def test_elements_without_a_value_may_be_any() -> None:
    sample = _sample((2,))

    assert not difference("empty", sample, [torch.zeros(2)], [torch.ones(2)])
    assert difference("empty", sample, [torch.zeros(3)], [torch.ones(2)])
    assert difference("zeros", sample, [torch.zeros(2)], [torch.ones(2)])


@pytest.mark.parametrize(
    ("places", "agrees"),
    [([1, 3, 0, 2], True), ([3, 1, 2, 0], True), ([1, 1, 0, 2], False), ([0, 1, 2, 3], False)],
)
def test_equal_elements_may_be_in_any_order(places: list[int], agrees: bool) -> None:
    x = torch.tensor([5.0, 2.0, 5.0, 2.0])
    values, expected = x.sort()

    own = [values, torch.tensor(places)]
    assert (difference("sort", _sample(x), own, [values, expected]) == "") == agrees


def test_a_place_of_a_value_has_that_value() -> None:
    x = torch.tensor([[1, 7, 7], [4, 0, 4]])
    values, places = x.kthvalue(3, 1)

    sample = _sample(x, 3, 1)
    assert not difference("kthvalue", sample, [values, torch.tensor([1, 0])], [values, places])
    assert difference("kthvalue", sample, [values, torch.tensor([0, 0])], [values, places])
    assert difference("kthvalue", sample, [values, torch.tensor([1, 3])], [values, places])
