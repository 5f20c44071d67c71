"""Whether the rows of functions are independent."""

from collections.abc import Callable

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.inference.independence import dependent_result
from relax_egraph.inference.rows import Array, Arrays
from relax_egraph.inference.tensor import Tensor
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
    assert dependent_result(model(OWN[function])) is None


@pytest.mark.parametrize("function", OTHERS)
def test_rows_that_depend_on_others_are_seen(function: str) -> None:
    assert dependent_result(model(OTHERS[function])) == "y"


def test_sizes_are_tried_until_the_model_takes_one() -> None:
    def eights(inputs: Arrays) -> Arrays:
        if inputs["x"].shape[1] % 8:
            raise RunError("s is not divisible by 8")
        return {"y": inputs["x"]}

    tensors = [Tensor(name, "float32", ("n", "s")) for name in ("x", "y")]

    assert dependent_result(FakeModel(eights, tensors[:1], tensors[1:])) is None


def test_a_model_that_refuses_all_is_not_known_to_have_independent_rows() -> None:
    def refuses(_: Arrays) -> Arrays:
        raise RunError("no")

    with pytest.raises(RunError, match=r"inputs that are made up are refused: no$"):
        dependent_result(FakeModel(refuses))


def of_fixed_rows(function: Function, rows: int) -> FakeModel:
    fixed = model(function, rows, 2)
    fixed.batch = None
    return fixed


@pytest.mark.parametrize("rows", [2, 3, 8])
@pytest.mark.parametrize("function", [*OWN, *OTHERS])
def test_a_fixed_number_of_rows_is_tried_with_other_rows_beside_them(
    function: str, rows: int
) -> None:
    fixed = of_fixed_rows({**OWN, **OTHERS}[function], rows)
    same_for_all_batches_of_one_size = function in (*OWN, "times the count")

    assert dependent_result(fixed) == (None if same_for_all_batches_of_one_size else "y")
    assert set(fixed.calls) == {rows}


def test_one_row_has_no_others() -> None:
    one = of_fixed_rows(np.cumsum, 1)

    assert dependent_result(one) is None
    assert one.calls == []


def test_the_first_result_whose_rows_are_dependent_is_named() -> None:
    results = [Tensor(name, "float32", ("n", 2)) for name in ("same", "sums", "means")]
    several = FakeModel(
        lambda inputs: {
            "same": inputs["x"],
            "sums": np.cumsum(inputs["x"], 0),
            "means": inputs["x"] - inputs["x"].mean(0),
        },
        outputs=results,
    )

    assert dependent_result(several) == "sums"
