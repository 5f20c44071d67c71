"""Products, variances, medians and collapsing sums: numbers, edges, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr, Var, shape
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import Shape, StructInfo, TupleStructInfo, tensor

n, m = dims.symbol("n"), dims.symbol("m")
Array = np.ndarray[Any, Any]
NAN = np.nan


def of(*extents: dims.Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(extents, dtype))


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], operands, attrs)


def compiled(name: str, x: Array, known: Shape, *rest: Expr, **attrs: Attr) -> Any:
    """What machine code computes of `x`, of which `known` is known."""
    param = Var("x", tensor(known, x.dtype.name))
    bb = BlockBuilder()
    with bb.function("main", [param]):
        bb.emit_func_output(bb.emit(call(name, param, *rest, **attrs)))
    return VirtualMachine(build(bb.get()))["main"](x)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("prod", np.array([2, 3, -4], np.float32), np.float32(-24)),
        ("prod", np.array([100, 3], np.int8), np.int8(44)),
        ("prod", np.array([True, False]), np.False_),
        ("prod", np.zeros(0, np.uint8), np.uint8(1)),
        ("prod", np.zeros(0, np.bool_), np.True_),
        ("variance", np.array([1, 2, 3, 6], np.float32), np.float32(3.5)),
        ("variance", np.array([7.0]), np.float64(0)),
        ("variance", np.zeros(0, np.float32), np.float32(NAN)),
        ("variance", np.array([1, NAN]), np.float64(NAN)),
        ("variance", np.array([1e8, 1e8 + 2]), np.float64(1)),
        ("std", np.array([1, 5], np.float32), np.float32(2)),
        ("median", np.array([5, 1, 4, 2], np.int32), np.int32(2)),
        ("median", np.array([NAN, 3, 1]), np.float64(3)),
        ("median", np.array([NAN, NAN, 1, 2]), np.float64(2)),
    ],
)
def test_a_reduction_of_all_elements_is_what_it_says(name: str, x: Array, expected: Any) -> None:
    result = computed(name, x)

    np.testing.assert_array_equal(result, np.asarray(expected), strict=True)


def test_a_median_along_one_axis_comes_with_its_indices() -> None:
    x = np.array([[3, 1, 2], [NAN, 0, 0]], np.float32)

    values, indices = computed("median", x, axis=(-1,), keepdims=True)

    np.testing.assert_array_equal(values, np.array([[2], [0]], np.float32), strict=True)
    np.testing.assert_array_equal(indices, np.array([[2], [2]]), strict=True)


def test_a_median_over_several_axes_has_no_indices() -> None:
    x = np.arange(12).reshape(2, 3, 2)

    result = computed("median", x, axis=(2, 0))

    np.testing.assert_array_equal(result, np.array([1, 3, 5]), strict=True)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ((), 15),
        ((3,), [3, 5, 7]),
        ((1, 1), [[15]]),
        ((2, 1), [[3], [12]]),
        ((2, 3), [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_a_sum_collapses_what_broadcasting_repeated(target: tuple[int, ...], expected: Any) -> None:
    x = np.arange(6).reshape(2, 3)

    to = computed("collapse_sum_to", x, target)
    like = computed("collapse_sum_like", x, np.zeros(target, np.float32))

    np.testing.assert_array_equal(to, np.asarray(expected), strict=True)
    np.testing.assert_array_equal(like, to, strict=True)


@pytest.mark.parametrize("axis", [(0,), (1,), None])
@pytest.mark.parametrize(("name", "reference"), [("prod", np.prod), ("variance", np.var)])
def test_kernels_of_many_elements_agree_with_numpy(
    name: str, reference: Any, axis: tuple[int, ...] | None
) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, (37, 41)).astype(np.float32)
    wanted = reference(x.astype(np.float64), axis=axis)

    result = compiled(name, x, (n, 41), axis=axis)

    np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=0)


@pytest.mark.parametrize("extents", [(1, 3), (2, 3)])
def test_whether_a_sum_collapses_may_be_decided_at_run_time(extents: tuple[int, int]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    params = Var("x", tensor((n, 3), "float32")), Var("y", tensor((m, 3), "float32"))
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(call("collapse_sum_like", *params)))

    result = VirtualMachine(build(bb.get()))["main"](x, np.zeros(extents, np.float32))

    expected = x if extents == (2, 3) else x.sum(axis=0, keepdims=True)
    np.testing.assert_array_equal(result, expected, strict=True)


def test_the_median_of_nothing_is_refused_at_run_time() -> None:
    with pytest.raises(RunError) as error:
        compiled("median", np.zeros((2, 0), np.float32), (2, n), axis=(1,))

    assert str(error.value).endswith(
        'R.median of R.Tensor((2, 0), "float32"): needs an element over axis 1'
    )


REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    (
        "variance",
        (of(3, dtype="int32"),),
        {},
        'R.variance of R.Tensor((3,), "int32"): needs a floating-point tensor',
    ),
    (
        "std",
        (of(3, dtype="bool"),),
        {},
        'R.std of R.Tensor((3,), "bool"): needs a floating-point tensor',
    ),
    (
        "prod",
        (of(3),),
        {"axis": 1},
        'R.prod of R.Tensor((3,), "float32"): axis 1 is outside of rank 1',
    ),
    (
        "median",
        (of(n, 0),),
        {"axis": (0, -1)},
        'R.median of R.Tensor((n, 0), "float32"): needs an element over axis 0, -1',
    ),
    (
        "median",
        (of(0, n),),
        {},
        'R.median of R.Tensor((0, n), "float32"): needs an element over all axes',
    ),
    (
        "collapse_sum_to",
        (of(n, 3), shape([n, 2])),
        {},
        'R.collapse_sum_to of R.Tensor((n, 3), "float32") to (n, 2): '
        "needs a shape that broadcasts to it",
    ),
    (
        "collapse_sum_like",
        (of(3), Var("y", tensor(None, "float32", 2))),
        {},
        'R.collapse_sum_like of R.Tensor((3,), "float32") to rank 2: '
        "needs a shape that broadcasts to it",
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_a_reduction_refuses_what_it_has_no_meaning_for(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as error:
        call(name, *args, **attrs)

    assert str(error.value) == message


UNKNOWN = Var("u", tensor(None, None))


@pytest.mark.parametrize(
    ("name", "args", "attrs", "expected"),
    [
        ("prod", (of(n, 3, m),), {"axis": (1,)}, tensor((n, m), "float32")),
        ("median", (UNKNOWN,), {}, tensor((), None)),
        (
            "median",
            (UNKNOWN,),
            {"axis": (0,)},
            TupleStructInfo((tensor(None, None), tensor(None, "int64"))),
        ),
        ("collapse_sum_to", (UNKNOWN, ShapeExpr((n,))), {}, tensor((n,), None)),
        ("collapse_sum_like", (of(n), UNKNOWN), {}, tensor(None, "float32")),
    ],
)
def test_of_operands_known_in_part_the_result_is_known_in_part(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], expected: StructInfo
) -> None:
    assert call(name, *args, **attrs).struct_info == expected
