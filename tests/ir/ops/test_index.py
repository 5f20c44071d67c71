"""Reading at positions: indices outside of an axis, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, Tuple, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from tests.ir.ops.test_operators import STATIC, Known, module_of
from tests.support.ops.case import Array, Case


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


X, INDICES = of(2, 3), of(4, dtype="int64")


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], operands, attrs)


def compiled(known: Known, name: str, *operands: Any, **attrs: Attr) -> Any:
    module = module_of(name, [(Case(operands, attrs), known)])
    return VirtualMachine(build(module))["f0"](*(o for o in operands if isinstance(o, np.ndarray)))


NUMBERS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("name", "indices", "attrs", "expected"),
    [
        ("take", np.array(1), {"axis": 0}, [4, 5, 6, 7]),
        ("take", np.array([-1, 7, -9]), {"axis": 0}, NUMBERS[[2, 2, 0]]),
        ("take", np.array([-1, 7]), {"axis": 0, "mode": "clip"}, NUMBERS[[0, 2]]),
        ("take", np.array([-1, 7]), {"axis": 0, "mode": "wrap"}, NUMBERS[[2, 1]]),
        ("take", np.array([[3, 0]]), {"axis": 1}, NUMBERS[:, [[3, 0]]]),
        ("gather_elements", np.array([[1, 2, 0, -1]]), {}, [[4, 9, 2, 11]]),
        ("gather_elements", np.array([[1], [0], [-1]]), {"axis": 1}, [[1], [4], [11]]),
        ("gather_nd", np.array([[0, 3], [-1, 1]]), {}, [3, 9]),
        ("gather_nd", np.array([[0], [3], [1]]), {"batch_dims": 1}, [0, 7, 9]),
        ("gather_nd", np.zeros((2, 0), int), {}, [NUMBERS, NUMBERS]),
        ("index_tensor", (np.array([[0], [2]]), np.array([1, -1])), {}, [[1, 3], [9, 11]]),
        ("index_tensor", (np.array([1, 5]),), {}, NUMBERS[[1, 2]]),
    ],
)
def test_what_is_read_is_where_the_indices_say(
    name: str, indices: Any, attrs: dict[str, Attr], expected: Any
) -> None:
    result = computed(name, NUMBERS, indices, **attrs)

    np.testing.assert_array_equal(result, np.array(expected, np.float32), strict=True)


@pytest.mark.parametrize("known", [STATIC, Known({3: "n", 2: "m"})])
def test_nan_is_read_outside_of_the_axis(known: Known) -> None:
    indices = np.array([-1, 3])

    result = compiled(known, "take", NUMBERS[:, 0].copy(), indices, mode="nan")

    np.testing.assert_array_equal(result, np.full(2, np.nan, np.float32))


@pytest.mark.parametrize("known", [STATIC, Known({3: "n", 4: "m"}), Known({}, shapes=False)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint32", "uint64"])
def test_no_index_reads_outside_of_a_buffer(known: Known, dtype: str) -> None:
    limits = np.iinfo(dtype)
    indices = np.array([limits.min, limits.max, 0], dtype)
    expected = NUMBERS[[0, 2, 0]]

    assert compiled(known, "take", NUMBERS, indices, axis=0).tolist() == expected.tolist()
    assert compiled(known, "gather_nd", NUMBERS, indices[:, None]).tolist() == expected.tolist()


@pytest.mark.parametrize("known", [STATIC, Known({0: "n"}), Known({}, shapes=False)])
@pytest.mark.parametrize(
    ("name", "indices", "attrs"),
    [
        ("take", np.array([1, -1]), {"axis": 0}),
        ("take", np.array([1, -1]), {"axis": 0, "mode": "wrap"}),
        ("gather_elements", np.ones((2, 3), np.int64), {}),
        ("gather_nd", np.ones((2, 1), np.int64), {}),
    ],
)
def test_an_axis_without_elements_reads_as_0(
    known: Known, name: str, indices: Array, attrs: dict[str, Attr]
) -> None:
    result = compiled(known, name, np.zeros((0, 3), np.int32), indices, **attrs)

    np.testing.assert_array_equal(result, np.zeros((2, 3), np.int32), strict=True)


GIVEN = 'R.Tensor((2, 3), "float32")'
FOUR = 'R.Tensor((4,), "int64")'


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "message"),
    [
        (
            "take",
            (X, of(4)),
            {"axis": 0},
            f'R.take of {GIVEN} and R.Tensor((4,), "float32"): needs indices of integers',
        ),
        (
            "take",
            (X, INDICES),
            {},
            f"R.take of {GIVEN} and {FOUR}: needs a tensor of rank 1, or an axis",
        ),
        (
            "take",
            (X, INDICES),
            {"axis": 0, "mode": "raise"},
            f'R.take of {GIVEN} and {FOUR}: mode is "raise", needs one of: fast, clip, wrap, nan',
        ),
        (
            "take",
            (INDICES, INDICES),
            {"mode": "nan"},
            f'R.take of {FOUR} and {FOUR}: mode "nan" needs a floating-point tensor',
        ),
        (
            "gather_elements",
            (X, INDICES),
            {},
            f"R.gather_elements of {GIVEN} and {FOUR}: needs operands of one rank",
        ),
        (
            "gather_elements",
            (X, of(4, 5, dtype="int64")),
            {},
            f'R.gather_elements of {GIVEN} and R.Tensor((4, 5), "int64"): '
            "along axis 1 there are indices for 5 of 3 elements",
        ),
        (
            "gather_nd",
            (X, of(2, 2, dtype="int64")),
            {"batch_dims": 1},
            f'R.gather_nd of {GIVEN} and R.Tensor((2, 2), "int64"): '
            "2 indices behind 1 batch axes, needs a tensor of rank 3 or more",
        ),
        (
            "gather_nd",
            (X, of(4, 1, dtype="int64")),
            {"batch_dims": 1},
            f'R.gather_nd of {GIVEN} and R.Tensor((4, 1), "int64"): '
            "batch axis 0 has the extents 2 and 4",
        ),
        (
            "gather_nd",
            (X, of(dtype="int64")),
            {},
            f'R.gather_nd of {GIVEN} and R.Tensor((), "int64"): needs indices of rank 1 or more',
        ),
        (
            "gather_nd",
            (X, of(2, 1, dtype="int64")),
            {"batch_dims": -1},
            f'R.gather_nd of {GIVEN} and R.Tensor((2, 1), "int64"): '
            "batch_dims is -1, needs 0 or more",
        ),
        (
            "index_tensor",
            (X, Tuple((INDICES, of(3, dtype="int64")))),
            {},
            f'R.index_tensor of {GIVEN} and R.Tuple({FOUR}, R.Tensor((3,), "int64")): '
            "the indices do not broadcast",
        ),
        (
            "index_tensor",
            (X, Tuple(())),
            {},
            f"R.index_tensor of {GIVEN} and R.Tuple(): "
            "needs 1 tensor of indices or more, and no more than axes",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    name: str, operands: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as raised:
        call(name, *operands, **attrs)

    assert str(raised.value) == message
