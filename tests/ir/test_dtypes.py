"""Numbers as tensors of a dtype: what a rule makes by ``(R.const number dtype)``."""

import math

import numpy as np
import pytest

from relax_egraph.ir.dtypes import scalar


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.75, "int32", 1),
        (-1.75, "int8", -1),
        (-1.0, "uint8", 0),
        (300.0, "uint8", 255),
        (1e300, "int64", 2**63 - 1),
        (-math.inf, "int16", -(2**15)),
        (math.nan, "int32", 0),
        (2.0, "bool", True),
        (1e300, "float32", math.inf),
        (0.1, "float32", np.float32(0.1)),
        (0.1, "bfloat16", 0.10009765625),
    ],
)
def test_a_number_is_converted_as_kernels_convert_it(
    value: float, dtype: str, expected: object
) -> None:
    number = scalar(value, dtype)

    assert (number.shape, number.dtype.name) == ((), dtype)
    assert number == expected
