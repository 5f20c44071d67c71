"""Calls that run together."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.errors import RunError
from relax_egraph.inference.rows import Array, Arrays
from relax_egraph.server.batcher import Batcher
from tests.support.served import FakeModel, doubled, rows


def ignore(rows: int, seconds: float) -> None: ...


def batcher(model: FakeModel, most: int = 8, max_wait: float = 0.001) -> Batcher:
    return Batcher(model, most, max_wait, ignore)


async def together(calls: Batcher, inputs: Sequence[Array]) -> list[Any]:
    asked: list[Coroutine[Any, Any, Arrays]] = [calls({"x": x}) for x in inputs]
    return await asyncio.gather(*asked, return_exceptions=True)


def test_calls_of_the_same_time_run_as_one() -> None:
    model = FakeModel()

    answers = asyncio.run(together(batcher(model), [rows(1), rows(2, 3), rows(4)]))

    assert [a["y"].tolist() for a in answers] == [[[2, 2]], [[4, 4], [6, 6]], [[8, 8]]]
    assert model.calls == [4]


def test_calls_of_other_sizes_or_dtypes_are_not_joined() -> None:
    model = FakeModel()
    inputs = [rows(1), np.ones((1, 3), "float32"), rows(1).astype("float64"), rows(2)]

    answers = asyncio.run(together(batcher(model), inputs))

    assert [(a["y"].dtype, a["y"].shape) for a in answers] == [(x.dtype, x.shape) for x in inputs]
    assert sorted(model.calls) == [1, 1, 2]


def test_a_call_fails_by_its_own_inputs_alone() -> None:
    def refuses_negative(inputs: Arrays) -> Arrays:
        if (inputs["x"] < 0).any():
            raise RunError("a negative number")
        return doubled(inputs)

    model = FakeModel(refuses_negative)

    good, bad, other = asyncio.run(together(batcher(model), [rows(1), rows(-1), rows(2)]))

    assert [good["y"].tolist(), other["y"].tolist()] == [[[2, 2]], [[4, 4]]]
    assert isinstance(bad, RunError)
    assert model.calls == [3, 1, 1, 1]


def test_outputs_with_other_rows_than_the_inputs_are_not_split() -> None:
    model = FakeModel(lambda inputs: {"y": inputs["x"].sum(0, keepdims=True)})

    answers = asyncio.run(together(batcher(model), [rows(1, 2), rows(3, 4)]))

    assert [a["y"].tolist() for a in answers] == [[[3, 3]], [[7, 7]]]


def test_a_call_that_was_given_up_does_not_run() -> None:
    model = FakeModel()

    async def give_up() -> Any:
        calls = batcher(model, max_wait=0.05)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await calls({"x": rows(1)})
        return await calls({"x": rows(2)})

    assert asyncio.run(give_up())["y"].tolist() == [[4, 4]]
    assert model.calls == [1]


def test_one_row_at_most_joins_nothing() -> None:
    model = FakeModel()

    asyncio.run(together(batcher(model, most=1), [rows(1), rows(2)]))

    assert model.calls == [1, 1]


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(-9, 9), max_size=12), max_size=20), st.integers(1, 10))
def test_any_calls_get_their_own_answers(values: list[list[int]], most: int) -> None:
    answers = asyncio.run(together(batcher(FakeModel(), most), [rows(*v) for v in values]))

    assert [a["y"].tolist() for a in answers] == [[[2 * n, 2 * n] for n in v] for v in values]
