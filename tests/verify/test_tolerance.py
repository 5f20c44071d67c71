"""What two values of one class may differ in, and what their difference is called."""

from dataclasses import replace

import numpy as np
import pytest

from relax_egraph.verify.values.inputs import Kind
from relax_egraph.verify.values.tolerance import Computed, Gap, gap


def computed(elements: list[float], dtype: str, scale: float = 1.0) -> Computed:
    """A value whose meaning is `elements`, as `dtype` has them."""
    wide = np.array(elements)
    value = wide.astype(dtype)
    return Computed(value, wide if value.dtype.kind not in "bui" else value, scale)


@pytest.mark.parametrize(
    ("left", "right", "dtype", "kind", "need", "on"),
    [
        ([1.0, 0.0], [1.0, 0.0], "float32", "ordinary", "exact", set()),
        ([0.0], [-0.0], "float32", "ordinary", "exact", {"signed zero"}),
        ([1.0], [2.0], "int32", "ordinary", "unsound", set()),
        ([1.0], [2.0], "float32", "ordinary", "unsound", {"rounding"}),
        ([np.nan], [1.0], "float32", "ordinary", "unsound", {"NaN"}),
        ([np.inf], [1.0], "float32", "ordinary", "unsound", {"inf"}),
        ([np.nan], [1.0], "float32", "nan", "fast", {"NaN"}),
        ([1.0], [np.inf], "float32", "large", "fast", {"overflow"}),
        ([np.inf], [1.0], "float32", "large", "reassociates", {"overflow"}),
        ([np.inf], [np.nan], "float32", "infinite", "reassociates", {"inf"}),
        ([1e-40], [0.0], "float32", "extreme", "reassociates", {"subnormal"}),
    ],
)
def test_what_differs_is_named(
    left: list[float], right: list[float], dtype: str, kind: Kind, need: str, on: set[str]
) -> None:
    found = gap(computed(left, dtype), computed(right, dtype), kind)

    assert (found.need, found.on) == (need, on)


def test_shapes_and_dtypes_are_the_same() -> None:
    one = computed([1.0], "float32")

    assert gap(one, computed([1.0, 1.0], "float32"), "ordinary") == Gap("unsound")
    assert gap(one, computed([1.0], "float64"), "ordinary") == Gap("unsound")


def rounded(error: float, dtype: str = "float32") -> tuple[Computed, Computed]:
    """1, and 1 with an error that rounding has made of it."""
    exact = computed([1.0], dtype)
    return exact, replace(exact, value=np.array([1 + error]).astype(dtype))


def test_the_largest_numbers_have_last_places() -> None:
    largest = float(np.finfo("float64").max)
    below = float(np.nextafter(largest, 0))

    found = gap(
        computed([largest], "float64", largest), computed([below], "float64", largest), "ordinary"
    )

    assert (found.need, found.ulps) == ("reassociates", 1)


def test_rounding_is_measured_in_last_places() -> None:
    found = gap(*rounded(3 * 2.0**-23), "ordinary")

    assert (found.need, found.ulps) == ("reassociates", 3)


def test_more_than_rounding_is_fast() -> None:
    assert gap(*rounded(2.0**-12), "ordinary").need == "fast"


def test_what_shaken_runs_come_to_is_rounding() -> None:
    pair = rounded(2.0**-12)

    assert gap(*pair, "ordinary", np.array([2.0**-13])).need == "reassociates"
    assert gap(*pair, "ordinary", np.array([2.0**-15])).need == "fast"


def test_cut_digits_are_no_rounding() -> None:
    """The left side is as far off as the right would be: it was in float16 for a while."""
    exact, a_little = rounded(2.0**-14)
    _, a_lot = rounded(2.0**-10)

    assert gap(a_little, exact, "ordinary").need == "reassociates"
    assert gap(a_lot, exact, "ordinary").need == "fast"


def test_storage_types_are_exact_up_to_where_they_are_rounded() -> None:
    assert gap(*rounded(2.0**-9, "float16"), "ordinary").need == "exact"
    assert gap(*rounded(2.0**-6, "float16"), "ordinary").need == "reassociates"
