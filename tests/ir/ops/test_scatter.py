"""Writing at positions: order of updates, indices outside, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, PrimValue, Tuple, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import StructInfo, tensor
from tests.ir.ops.test_operators import STATIC, Known, module_of
from tests.support.ops.case import Array, Case

n = dims.symbol("n")


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], operands, attrs)


def compiled(known: Known, name: str, *operands: Any, **attrs: Attr) -> Any:
    module = module_of(name, [(Case(operands, attrs), known)])
    return VirtualMachine(build(module))["f0"](*(o for o in operands if isinstance(o, np.ndarray)))


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("update", [8, 2, 5]),
        ("add", [13, 2, 8]),
        ("mul", [32, 2, 15]),
        ("max", [8, 2, 5]),
        ("min", [1, 2, 3]),
        ("mean", [5.25, 2, 4]),
    ],
)
def test_updates_of_one_element_are_combined_in_order(
    reduction: str, expected: list[float]
) -> None:
    data, updates = np.array([1, 2, 3], np.float32), np.array([4, 5, 8], np.float32)
    indices = np.array([0, -1, -3])

    result = computed("scatter_elements", data, indices, updates, reduction=reduction)

    np.testing.assert_array_equal(result, np.array(expected, np.float32), strict=True)


ZEROS = np.zeros((3, 4), np.int32)
ONES = np.ones((2, 4), np.int32)


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "expected"),
    [
        (
            "scatter_elements",
            (np.array([[1, 2]]), np.array([[5, 7]], np.int32)),
            {},
            [[0, 0, 0, 0], [5, 0, 0, 0], [0, 7, 0, 0]],
        ),
        (
            "scatter_elements",
            (np.array([[1, 2]]), np.array([[5, 7]], np.int32)),
            {"axis": -1},
            [[0, 5, 7, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        ),
        (
            "scatter_nd",
            (np.array([[2], [2]]), ONES),
            {"reduction": "add"},
            [[0] * 4] * 2 + [[2] * 4],
        ),
        (
            "scatter_nd",
            (np.array([[0, 1], [2, -1]]), np.array([3, 4], np.int32)),
            {},
            [[0, 3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 4]],
        ),
        (
            "index_put",
            ((np.array([[0], [2]]), np.array([1, 1])), np.array(3, np.int32)),
            {"accumulate": True},
            [[0, 6, 0, 0], [0, 0, 0, 0], [0, 6, 0, 0]],
        ),
        ("slice_scatter", (ONES, -3, 3, 2), {}, [[1] * 4, [0] * 4, [1] * 4]),
        ("masked_fill", (np.array([True, False, False, True]),), {"value": 7}, [[7, 0, 0, 7]] * 3),
    ],
)
def test_what_is_written_is_where_the_indices_say(
    name: str, operands: tuple[Any, ...], attrs: dict[str, Attr], expected: Any
) -> None:
    result = computed(name, ZEROS, *operands, **attrs)

    np.testing.assert_array_equal(result, np.array(expected, np.int32), strict=True)


@pytest.mark.parametrize("known", [STATIC, Known({3: "n", 4: "m"}), Known({}, shapes=False)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint32", "uint64"])
def test_no_index_writes_outside_of_a_buffer(known: Known, dtype: str) -> None:
    limits = np.iinfo(dtype)
    indices = np.array([[limits.min], [limits.max]], dtype)
    updates = np.stack([ONES[0], ONES[0] * 2])

    result = compiled(known, "scatter_nd", ZEROS, indices, updates)

    assert result.tolist() == [[1] * 4, [0] * 4, [2] * 4]


@pytest.mark.parametrize("known", [STATIC, Known({0: "n"}), Known({}, shapes=False)])
def test_nothing_is_written_into_an_axis_without_elements(known: Known) -> None:
    data, indices = np.zeros((0, 4), np.int32), np.array([[0], [7]])

    result = compiled(known, "scatter_nd", data, indices, ONES)

    np.testing.assert_array_equal(result, data, strict=True)


@pytest.mark.parametrize("known", [STATIC, Known({3: "n"}), Known({}, shapes=False)])
@pytest.mark.parametrize("reduction", ["max", "min", "mean", "add"])
def test_nan_passes_through_a_reduction(known: Known, reduction: str) -> None:
    data, updates = np.array([np.nan, 1, 2]), np.array([1, np.nan, 5])
    indices = np.array([0, 1, 1])

    result = compiled(known, "scatter_elements", data, indices, updates, reduction=reduction)

    assert np.isnan(result).tolist() == [True, True, False]


def test_a_source_that_does_not_fill_the_slice_is_refused_at_run_time() -> None:
    x, src = np.zeros(5), np.zeros(3)

    with pytest.raises(RunError) as raised:
        computed("slice_scatter", x, src, 0, 2, 1)

    assert str(raised.value) == (
        'R.slice_scatter of R.Tensor((5,), "float64") and R.Tensor((3,), "float64"): '
        "axis 0 of the source has extent 3, needs 2"
    )


@pytest.mark.parametrize(
    ("name", "indices", "updates", "message"),
    [
        (
            "scatter_elements",
            np.array([[0, 0, 0]]),
            np.zeros((1, 3)),
            "along axis 1 there are indices for 3 of 2 elements",
        ),
        (
            "scatter_elements",
            np.array([[0, 0]]),
            np.zeros((2, 1)),
            "needs updates of shape (1, 2)",
        ),
        ("scatter_nd", np.zeros((1, 3), int), np.zeros(1), "3 indices into 2 axes"),
        (
            "scatter_nd",
            np.zeros((1, 1), int),
            np.zeros((1, 1)),
            "needs updates of shape (1, 2)",
        ),
    ],
)
def test_updates_that_do_not_fit_are_refused_at_run_time(
    name: str, indices: Array, updates: Array, message: str
) -> None:
    with pytest.raises(RunError) as raised:
        computed(name, np.zeros((2, 2)), indices, updates)

    assert str(raised.value).endswith(f": {message}")


X, AT = of(2, 3), of(4, 1, dtype="int64")
GIVEN = 'R.Tensor((2, 3), "float32")'
ROWS = 'R.Tensor((4, 1), "int64")'
FLAT = 'R.Tensor((2,), "int64")'
ZERO, ONE, TWO = PrimValue(0), PrimValue(1), PrimValue(2)


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "message"),
    [
        (
            "scatter_elements",
            (X, of(2, 3, dtype="int64"), of(2, 2)),
            {},
            f'R.scatter_elements of {GIVEN}, R.Tensor((2, 3), "int64") and '
            'R.Tensor((2, 2), "float32"): needs updates of shape (2, 3)',
        ),
        (
            "scatter_elements",
            (X, of(2, 3, dtype="int64"), of(2, 3, dtype="float64")),
            {},
            f'R.scatter_elements of {GIVEN}, R.Tensor((2, 3), "int64") and '
            'R.Tensor((2, 3), "float64"): needs data and updates of one dtype',
        ),
        (
            "scatter_elements",
            (of(2), of(2, dtype="int64"), of(2)),
            {"reduction": "sum"},
            f'R.scatter_elements of R.Tensor((2,), "float32"), {FLAT} and '
            'R.Tensor((2,), "float32"): reduction is "sum", '
            "needs one of: update, add, mul, max, min, mean",
        ),
        (
            "scatter_elements",
            (of(2, dtype="int64"), of(2, dtype="int64"), of(2, dtype="int64")),
            {"reduction": "mean"},
            f'R.scatter_elements of {FLAT}, {FLAT} and {FLAT}: reduction "mean" needs '
            "floating-point tensors",
        ),
        (
            "scatter_nd",
            (X, AT, of(4)),
            {},
            f'R.scatter_nd of {GIVEN}, {ROWS} and R.Tensor((4,), "float32"): '
            "needs updates of rank 2",
        ),
        (
            "scatter_nd",
            (X, AT, of(4, 3)),
            {"reduction": "mean"},
            f'R.scatter_nd of {GIVEN}, {ROWS} and R.Tensor((4, 3), "float32"): '
            'reduction is "mean", needs one of: update, add, mul, max, min',
        ),
        (
            "index_put",
            (X, Tuple((AT,)), of(4, 2)),
            {},
            f'R.index_put of {GIVEN}, R.Tuple({ROWS}) and R.Tensor((4, 2), "float32"): '
            "the values do not broadcast to (4, 1, 3)",
        ),
        (
            "slice_scatter",
            (X, of(3, 3), ZERO, TWO, ONE),
            {},
            f'R.slice_scatter of {GIVEN} and R.Tensor((3, 3), "float32"): '
            "axis 0 of the source has extent 3, needs 2",
        ),
        (
            "slice_scatter",
            (X, X, ZERO, TWO, ZERO),
            {},
            f"R.slice_scatter of {GIVEN} and {GIVEN}: step is 0, needs 1 or more",
        ),
        (
            "slice_scatter",
            (X, of(2), ZERO, TWO, ONE),
            {},
            f'R.slice_scatter of {GIVEN} and R.Tensor((2,), "float32"): needs operands of one rank',
        ),
        (
            "slice_scatter",
            (X, X, PrimValue(0.5, "float64"), TWO, ONE),
            {},
            f'R.slice_scatter of {GIVEN} and {GIVEN}: start is R.Prim("float64"), needs an integer',
        ),
        (
            "masked_fill",
            (X, X),
            {"value": 0.0},
            f"R.masked_fill of {GIVEN} and {GIVEN}: needs a mask of booleans",
        ),
        (
            "masked_fill",
            (of(2, dtype="int8"), of(2, dtype="bool")),
            {"value": 128.0},
            'R.masked_fill of R.Tensor((2,), "int8") and R.Tensor((2,), "bool"): '
            "the value 128.0 is no int8",
        ),
        (
            "masked_fill",
            (X, of(2, dtype="bool")),
            {"value": 0.0},
            f'R.masked_fill of {GIVEN} and R.Tensor((2,), "bool"): the shapes do not broadcast',
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    name: str, operands: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as raised:
        call(name, *operands, **attrs)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("indices", "updates"),
    [
        (tensor(None, "int8", 1), tensor(None, None, 1)),
        (tensor((4,), None), tensor(None, "float32")),
        (tensor(None, None), tensor((n,), "float32")),
    ],
)
def test_the_result_has_the_shape_of_the_data_whatever_is_known_of_the_rest(
    indices: StructInfo, updates: StructInfo
) -> None:
    operands = (of(n), Var("indices", indices), Var("updates", updates))

    assert call("scatter_elements", *operands).struct_info == tensor((n,), "float32")
