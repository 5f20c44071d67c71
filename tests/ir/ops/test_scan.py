"""Cumulative sums and products: numbers, dtypes, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Attr, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import StructInfo, tensor

n = dims.symbol("n")
X = Var("x", tensor((n, 3), "float32"))


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], [np.asarray(o) for o in operands], attrs)


@pytest.mark.parametrize(
    ("name", "x", "attrs", "expected"),
    [
        ("cumsum", [[1, 2], [3, 4]], {}, [1, 3, 6, 10]),
        ("cumsum", [[1, 2], [3, 4]], {"exclusive": True}, [0, 1, 3, 6]),
        ("cumsum", [[1, 2], [3, 4]], {"axis": -1}, [[1, 3], [3, 7]]),
        ("cumsum", [[1, 2], [3, 4]], {"axis": 0, "exclusive": True}, [[0, 0], [1, 2]]),
        ("cumprod", [[1, 2], [3, 4]], {"axis": 0}, [[1, 2], [3, 8]]),
        ("cumprod", [2, 3, 4], {"exclusive": True}, [1, 2, 6]),
    ],
)
def test_a_scan_is_what_it_says(
    name: str, x: list[Any], attrs: dict[str, Attr], expected: list[Any]
) -> None:
    result = computed(name, np.array(x, np.int32), **attrs)

    np.testing.assert_array_equal(result, np.array(expected, np.int32), strict=True)


@pytest.mark.parametrize(
    ("name", "x", "dtype", "expected"),
    [
        ("cumsum", np.array([100, 100], np.int8), None, np.array([100, -56], np.int8)),
        ("cumsum", np.array([100, 100], np.int8), "int32", np.array([100, 200], np.int32)),
        ("cumsum", np.array([1.75, 1.75]), "int32", np.array([1, 2], np.int32)),
        ("cumsum", np.array([False, True, False]), None, np.array([False, True, True])),
        ("cumsum", np.array([False, True, True]), "uint8", np.array([0, 1, 2], np.uint8)),
        ("cumprod", np.array([True, False, True]), None, np.array([True, False, False])),
        ("cumsum", np.array(3.0), None, np.array([3.0])),
        ("cumprod", np.zeros((2, 0), np.int64), None, np.zeros(0, np.int64)),
        (
            "cumsum",
            np.array([1, np.nan, 2], np.float32),
            None,
            np.array([1, np.nan, np.nan], np.float32),
        ),
        (
            "cumsum",
            np.array([1e8, 1, -1e8], np.float32),
            None,
            np.array([1e8, 1e8, 1], np.float32),
        ),
    ],
)
def test_a_scan_converts_then_combines(name: str, x: Any, dtype: str | None, expected: Any) -> None:
    result = computed(name, x, dtype=dtype)

    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"axis": 2}, 'R.cumsum of R.Tensor((n, 3), "float32"): axis 2 is outside of rank 2'),
        (
            {"dtype": "float128"},
            'R.cumsum of R.Tensor((n, 3), "float32"): dtype is "float128", needs one of '
            "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
            "float16, bfloat16, float32, float64",
        ),
    ],
)
def test_a_scan_refuses_what_there_is_not(attrs: dict[str, Attr], message: str) -> None:
    with pytest.raises(IllTyped) as error:
        call("cumsum", X, **attrs)

    assert str(error.value) == message


@pytest.mark.parametrize(
    ("x", "attrs", "expected"),
    [
        (X, {}, tensor((dims.mul(n, 3),), "float32")),
        (X, {"axis": 1, "dtype": "int64"}, tensor((n, 3), "int64")),
        (Var("u", tensor(None, None)), {}, tensor(None, None, 1)),
        (Var("u", tensor(None, None)), {"axis": 7}, tensor(None, None)),
    ],
)
def test_the_result_of_a_scan_is_known_as_far_as_its_operand(
    x: Var, attrs: dict[str, Attr], expected: StructInfo
) -> None:
    assert call("cumprod", x, **attrs).struct_info == expected
