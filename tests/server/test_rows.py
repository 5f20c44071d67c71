"""Models whose rows depend on each other are not joined."""

from collections.abc import Callable

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.inference.tensor import Tensor
from relax_egraph.server.model import Array, Arrays
from relax_egraph.server.rows import are_independent
from tests.support.served import FakeModel

Function = Callable[[Array], Array]


def model(function: Function, *shape: int | str) -> FakeModel:
    tensors = [Tensor(name, "float32", shape or ("n", 2)) for name in ("x", "y")]
    return FakeModel(lambda inputs: {"y": function(inputs["x"])}, tensors[:1], tensors[1:])


OWN: dict[str, Function] = {
    "absolute": np.abs,
    "minus the mean of the row": lambda x: x - x.mean(1, keepdims=True),
}
OTHERS: dict[str, Function] = {
    "minus the mean of the column": lambda x: x - x.mean(0),
    "sums": lambda x: np.cumsum(x, 0),
    "reversed": lambda x: x[::-1],
    "times the count": lambda x: x * len(x),
    "plus the place": lambda x: x + np.arange(len(x), dtype="float32")[:, None],
    "sorted": lambda x: np.sort(x, 0),
}


@pytest.mark.parametrize("function", OWN)
def test_rows_of_their_own_are_independent(function: str) -> None:
    assert are_independent(model(OWN[function]))


@pytest.mark.parametrize("function", OTHERS)
def test_rows_that_depend_on_others_are_seen(function: str) -> None:
    assert not are_independent(model(OTHERS[function]))


def test_sizes_are_tried_until_the_model_takes_one() -> None:
    def eights(inputs: Arrays) -> Arrays:
        if inputs["x"].shape[1] % 8:
            raise RunError("s is not divisible by 8")
        return {"y": inputs["x"]}

    tensor = Tensor("x", "float32", ("n", "s"))

    assert are_independent(FakeModel(eights, [tensor], [tensor]))


def test_a_model_that_refuses_all_is_not_known_to_have_independent_rows() -> None:
    def refuses(_: Arrays) -> Arrays:
        raise RunError("no")

    assert not are_independent(FakeModel(refuses))
