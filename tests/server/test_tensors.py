"""Arrays as JSON and as bytes."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from relax_egraph.inference.rows import Array
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.server.refusal import Refused
from relax_egraph.server.tensors import DATATYPES, from_bytes, from_json, to_bytes, to_json

SHAPES = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """Any bits of any dtype; one NaN, as JSON has no others."""
    dtype, shape = np.dtype(draw(st.sampled_from(DTYPES))), draw(SHAPES)
    if dtype.name == "bool":
        return draw(npst.arrays(bool, shape))
    array = draw(npst.arrays(f"u{dtype.itemsize}", shape)).view(dtype)
    return np.where(array != array, np.nan, array).astype(dtype)


def same(actual: Array, expected: Array) -> bool:
    wide: Any = "float32" if expected.dtype.name == "bfloat16" else expected.dtype
    kept = (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    return kept and np.array_equal(actual.astype(wide), expected.astype(wide), equal_nan=True)


@given(arrays())
def test_an_array_is_the_same_after_json(array: Array) -> None:
    sent = json.loads(json.dumps(to_json(array), allow_nan=False))

    assert same(from_json(sent, array.dtype.name, array.shape, "x"), array)


@given(arrays(), st.integers(0, 3))
def test_an_array_is_the_same_after_bytes_at_any_place(array: Array, offset: int) -> None:
    sent = memoryview(b"\0" * offset + to_bytes(array))[offset:]

    received = from_bytes(sent, array.dtype.name, array.shape, "x")

    assert same(received, array)
    assert received.flags.aligned
    assert received.flags.writeable


@given(arrays())
def test_lists_of_the_shape_are_the_same_as_one_list(array: Array) -> None:
    if array.ndim:
        nested: Any = np.array(to_json(array), object).reshape(array.shape).tolist()

        assert same(from_json(nested, array.dtype.name, array.shape, "x"), array)


def test_every_dtype_has_the_name_of_the_protocol() -> None:
    assert dict(DATATYPES) == {
        "bool": "BOOL",
        **{f"int{bits}": f"INT{bits}" for bits in (8, 16, 32, 64)},
        **{f"uint{bits}": f"UINT{bits}" for bits in (8, 16, 32, 64)},
        **{f"float{bits}": f"FP{bits}" for bits in (16, 32, 64)},
        "bfloat16": "BF16",
    }


@pytest.mark.parametrize(
    ("data", "dtype", "shape", "sentence"),
    [
        ([1, 2, 3], "float32", (2,), "x: data has 3 elements; shape [2] needs 2 elements"),
        ([[1], [2]], "float32", (1, 2), "x: data has [2, 1]; shape [1, 2] needs 2 elements"),
        ([[1], [2, 3]], "float32", (3,), "x: data has lists of 1 and of 2 elements"),
        ([[1], 2], "float32", (2,), "x: data has lists beside numbers, needs numbers of FP32"),
        ([None], "float32", (1,), "x: data has null, needs numbers of FP32"),
        ([True], "int8", (1,), "x: data has true, needs numbers of INT8"),
        ([1.5], "int8", (1,), "x: data has 1.5, needs numbers of INT8"),
        ([{}], "int8", (1,), "x: data has an object, needs numbers of INT8"),
        (["1"], "float64", (1,), "x: data has '1', needs numbers of FP64"),
        ([1], "bool", (1,), "x: data has 1, needs true or false"),
        ([128], "int8", (1,), "x: data has a number beyond the range of INT8"),
        ([-1], "uint64", (1,), "x: data has a number beyond the range of UINT64"),
        ([10**400], "float64", (1,), "x: data has a number beyond the range of FP64"),
    ],
)
def test_data_that_do_not_fit_are_refused(
    data: list[object], dtype: str, shape: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(Refused) as refusal:
        from_json(data, dtype, shape, "x")

    assert str(refusal.value) == sentence


def test_bytes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Refused, match=r"^x: 3 bytes; FP32 of shape \[1\] needs 4$"):
        from_bytes(memoryview(b"123"), "float32", (1,), "x")
    with pytest.raises(Refused, match=r"^x: a byte of BOOL is 2, needs 0 or 1$"):
        from_bytes(memoryview(b"\1\2"), "bool", (2,), "x")


def test_a_number_too_large_for_a_float_is_infinite() -> None:
    assert from_json([1e39, -1e39], "float32", (2,), "x").tolist() == [np.inf, -np.inf]
