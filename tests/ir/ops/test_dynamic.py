"""Results whose shape depends on data, shapes as values, and draws: numbers and refusals."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped, NotLowerable, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Attr, Expr, PrimValue, ShapeExpr, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TupleStructInfo, tensor
from relax_egraph.lower.vm_codegen import codegen

n, m = dims.symbol("n"), dims.symbol("m")
NAN = np.nan


def of(*extents: dims.Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(extents, dtype))


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], operands, attrs)


def assert_equal(actual: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, np.asarray(e), strict=True)


ALL: dict[str, Attr] = {"return_index": True, "return_inverse": True, "return_counts": True}


def test_distinct_elements_come_with_what_is_asked_for() -> None:
    x = np.array([[3, 1, 3], [2, 1, 3]])

    assert_equal(
        computed("unique", x, **ALL),
        ([1, 2, 3], [1, 3, 0], [2, 0, 2, 1, 0, 2], [2, 1, 3]),
    )
    assert_equal(
        computed("unique", x, sorted=False, **ALL),
        ([3, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1, 0], [3, 2, 1]),
    )


def test_distinct_slices_are_found_at_an_axis() -> None:
    x = np.array([[1, 0, 1], [2, 5, 2]], np.float32)

    assert_equal(
        computed("unique", x, axis=-1, **ALL),
        (np.array([[0, 1], [5, 2]], np.float32), [1, 0], [1, 0, 1], [1, 2]),
    )
    assert_equal(
        (computed("unique", x, axis=1, sorted=False),), (np.array([[1, 0], [2, 5]], np.float32),)
    )


def test_nan_is_one_element_but_slices_with_nan_differ() -> None:
    x = np.array([[NAN], [1], [NAN]])

    elements = computed("unique", x)
    slices = computed("unique", x, axis=0)

    np.testing.assert_array_equal(elements, [1, NAN])
    np.testing.assert_array_equal(slices, [[1], [NAN], [NAN]])


@pytest.mark.parametrize(("a", "b", "expected"), [(3, 4, True), (4, 4, True), (5, 4, False)])
def test_numbers_of_the_host_are_compared(a: int, b: int, expected: bool) -> None:
    x = Var("x", tensor((n, m), "float32"))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(call("prim_less_equal", PrimValue(n), PrimValue(m))))
    main = VirtualMachine(build(bb.get()))["main"]

    assert_equal((main(np.zeros((a, b), np.float32)),), (expected,))
    assert_equal((computed("prim_less_equal", a, b),), (expected,))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([[0, 1], [2, 0]], [[0, 1], [1, 0]]),
        ([0, NAN, -0.0], [[1]]),
        ([[False], [False]], np.zeros((2, 0))),
        (5, np.zeros((0, 1))),
        (0, np.zeros((0, 0))),
    ],
)
def test_nonzero_has_a_row_for_each_axis(x: Any, expected: Any) -> None:
    result = computed("nonzero", np.asarray(x))

    np.testing.assert_array_equal(result, np.asarray(expected, np.int64), strict=True)


def test_extents_that_are_symbols_become_elements() -> None:
    x = of(n, m, 3)
    bb = BlockBuilder()
    with bb.function("main", [x]):
        count = bb.emit(call("size", x))
        extents = bb.emit(call("shape_to_tensor", ShapeExpr((dims.mul(n, 2), m, 3))))
        back = bb.emit(call("tensor_to_shape", extents))
        resized = bb.emit(call("broadcast_to", count, back))
        bb.emit_func_output(bb.emit(call("shape_to_tensor", bb.emit(call("shape_of", resized)))))

    result = VirtualMachine(build(bb.get()))["main"](np.zeros((2, 5, 3), np.float32))

    np.testing.assert_array_equal(result, np.array([4, 5, 3]), strict=True)


def test_a_shape_has_no_negative_extent() -> None:
    with pytest.raises(RunError) as error:
        computed("tensor_to_shape", np.array([2, -1]))

    assert str(error.value) == (
        'R.tensor_to_shape of R.Tensor((2,), "int64"): the elements are no extents of a shape: '
        "[2, -1]"
    )


def test_the_machine_s_own_unique_has_no_attributes() -> None:
    x = of(n)
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(call("unique", x, sorted=False)))

    with pytest.raises(NotLowerable) as error:
        codegen(bb.get())

    assert str(error.value) == "main: R.unique has no instruction: run legalize_ops first"


PROB = np.array([[0.25, 0.25, 0.5], [0, 1, 0]], np.float32)


@pytest.mark.parametrize(
    ("sample", "indices", "expected"),
    [
        ([0, 0], None, [0, 1]),
        ([0.25, 0.999], None, [1, 1]),
        ([0.5, 1.5], None, [2, 2]),
        ([0.24, 0.49, 0.9], [0, 0, 1], [0, 1, 1]),
        ([], [], []),
    ],
)
def test_a_draw_is_where_the_cumulative_sum_passes_the_sample(
    sample: list[float], indices: list[int] | None, expected: list[int]
) -> None:
    uniform = np.array(sample, np.float32).reshape(-1, 1)
    chosen = [] if indices is None else [np.array(indices, np.int32).reshape(-1, 1)]

    result = computed("multinomial_from_uniform", PROB, uniform, *chosen)

    wanted = np.array(expected, np.int64).reshape(-1, 1)
    np.testing.assert_array_equal(result, wanted, strict=True)


def test_the_index_of_a_distribution_is_clamped() -> None:
    uniform = np.full((2, 1), 0.6, np.float32)

    result = computed("multinomial_from_uniform", PROB, uniform, np.array([[-1], [9]]))

    np.testing.assert_array_equal(result, np.array([[2], [1]]), strict=True)


@pytest.mark.parametrize(
    ("prob", "indices", "message"),
    [
        (np.zeros((3, 2)), [], "needs a distribution for each sample"),
        (np.zeros((0, 2)), [np.zeros((2, 1), np.int64)], "there is no distribution"),
    ],
)
def test_a_draw_without_a_distribution_is_refused_at_run_time(
    prob: Any, indices: list[Any], message: str
) -> None:
    with pytest.raises(RunError) as error:
        computed("multinomial_from_uniform", prob, np.zeros((2, 1)), *indices)

    assert str(error.value).endswith(f": {message}")


P, U = of(2, 3), of(2, 1)
DRAW = 'R.multinomial_from_uniform of R.Tensor((2, 3), "float32"), '
REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    (
        "unique",
        (of(n),),
        {"axis": 1},
        'R.unique of R.Tensor((n,), "float32"): axis 1 is outside of rank 1',
    ),
    (
        "tensor_to_shape",
        (of(2),),
        {},
        'R.tensor_to_shape of R.Tensor((2,), "float32"): needs a tensor of integers of rank 1',
    ),
    (
        "tensor_to_shape",
        (of(2, 2, dtype="int64"),),
        {},
        'R.tensor_to_shape of R.Tensor((2, 2), "int64"): needs a tensor of integers of rank 1',
    ),
    (
        "prim_less_equal",
        (PrimValue(n), PrimValue(0.5, "float64")),
        {},
        'R.prim_less_equal of R.Prim(value=n), R.Prim("float64"): needs whole numbers',
    ),
    (
        "multinomial_from_uniform",
        (P, of(2)),
        {},
        f'{DRAW}R.Tensor((2,), "float32"): needs tensors of rank 2',
    ),
    (
        "multinomial_from_uniform",
        (P, of(2, 2)),
        {},
        f'{DRAW}R.Tensor((2, 2), "float32"): needs samples of one column',
    ),
    (
        "multinomial_from_uniform",
        (P, of(3, 1)),
        {},
        f'{DRAW}R.Tensor((3, 1), "float32"): needs a distribution for each sample',
    ),
    (
        "multinomial_from_uniform",
        (of(2, 0), U),
        {},
        'R.multinomial_from_uniform of R.Tensor((2, 0), "float32"), R.Tensor((2, 1), "float32"): '
        "needs an outcome to draw",
    ),
    (
        "multinomial_from_uniform",
        (P, U, of(2, 1)),
        {},
        'R.multinomial_from_uniform of R.Tensor((2, 1), "float32"): needs a tensor of integers',
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_operands_that_do_not_fit_are_refused(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as error:
        call(name, *args, **attrs)

    assert str(error.value) == message


UNKNOWN = Var("u", tensor(None, None))


@pytest.mark.parametrize(
    ("name", "args", "attrs", "expected"),
    [
        ("unique", (of(n, 3),), {"axis": 0}, tensor(None, "float32", 2)),
        (
            "unique",
            (of(n, 3),),
            {"return_inverse": True, "return_counts": True},
            TupleStructInfo(
                (
                    tensor(None, "float32", 1),
                    tensor((dims.mul(n, 3),), "int64"),
                    tensor(None, "int64", 1),
                )
            ),
        ),
        ("nonzero", (UNKNOWN,), {}, tensor(None, "int64", 2)),
        ("size", (UNKNOWN,), {}, tensor((), "int64")),
        ("shape_to_tensor", (Var("s", ShapeStructInfo(None, 3)),), {}, tensor((3,), "int64")),
        ("shape_to_tensor", (Var("s", ShapeStructInfo()),), {}, tensor(None, "int64", 1)),
        ("tensor_to_shape", (of(3, dtype="int64"),), {}, ShapeStructInfo(None, 3)),
        ("tensor_to_shape", (of(n, dtype="int64"),), {}, ShapeStructInfo()),
        ("multinomial_from_uniform", (UNKNOWN, of(n, 1)), {}, tensor((n, 1), "int64")),
        ("multinomial_from_uniform", (P, UNKNOWN), {"dtype": "int32"}, tensor(None, "int32", 2)),
    ],
)
def test_of_operands_known_in_part_the_result_is_known_in_part(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], expected: StructInfo
) -> None:
    assert call(name, *args, **attrs).struct_info == expected
