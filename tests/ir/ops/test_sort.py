"""Sorting and searching: ties, NaN, empty axes, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Attr, Expr, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import Shape, StructInfo, TupleStructInfo, tensor
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.vm.machine import Engine

n = dims.symbol("n")
Array = np.ndarray[Any, Any]
NAN = np.nan


def of(*extents: dims.Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(extents, dtype))


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], [np.asarray(o) for o in operands], attrs)


def module_of(name: str, *params: Var, **attrs: Attr) -> Any:
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(call(name, *params, **attrs)))
    return bb.get()


def compiled(name: str, x: Array, known: Shape, **attrs: Attr) -> Any:
    """What machine code computes of `x`, of which `known` is known."""
    param = Var("x", tensor(known, x.dtype.name))
    return VirtualMachine(build(module_of(name, param, **attrs)))["main"](x)


@pytest.mark.parametrize(
    ("x", "ascending", "descending"),
    [
        ([3, 1, 3, 2], [1, 3, 0, 2], [0, 2, 3, 1]),
        ([NAN, 1, NAN, 2], [1, 3, 0, 2], [3, 1, 0, 2]),
        ([0.0, -0.0, 0.0], [0, 1, 2], [0, 1, 2]),
        ([True, False, True], [1, 0, 2], [0, 2, 1]),
        ([np.inf, NAN, -np.inf], [2, 0, 1], [0, 2, 1]),
        ([], [], []),
    ],
)
def test_equal_elements_keep_their_order_and_nan_is_last(
    x: list[Any], ascending: list[int], descending: list[int]
) -> None:
    up, down = computed("argsort", x), computed("argsort", x, descending=True)

    np.testing.assert_array_equal(up, np.array(ascending, np.int32), strict=True)
    np.testing.assert_array_equal(down, np.array(descending, np.int32), strict=True)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_the_ends_of_a_dtype_are_sorted_either_way(dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = np.array([[1, ends.min, ends.max]], dtype)

    result = computed("sort", x, descending=True)

    np.testing.assert_array_equal(result, np.array([[ends.max, 1, ends.min]], dtype), strict=True)


def test_sorting_is_along_an_axis() -> None:
    x = np.array([[3, 1], [2, 4]])

    np.testing.assert_array_equal(computed("sort", x), [[1, 3], [2, 4]])
    np.testing.assert_array_equal(computed("sort", x, axis=0), [[2, 1], [3, 4]])


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"k": 2, "ret_type": "indices"}, [1, 3]),
        ({"k": 2, "ret_type": "indices", "largest": False}, [2, 0]),
        ({"k": 9, "ret_type": "indices"}, [1, 3, 0, 2]),
        ({"k": 0, "ret_type": "indices"}, [1, 3, 0, 2]),
        ({"ret_type": "indices"}, [1]),
    ],
)
def test_the_first_of_equal_elements_are_taken(attrs: dict[str, Attr], expected: Any) -> None:
    result = computed("topk", np.array([2, 5, 1, 5]), **attrs)

    np.testing.assert_array_equal(result, np.array(expected, np.int32), strict=True)


def test_topk_gives_values_and_indices() -> None:
    x = np.array([[1, 3], [NAN, 2]], np.float32)

    values, indices = computed("topk", x, axis=0, dtype="int64")

    np.testing.assert_array_equal(values, np.array([[1, 3]], np.float32), strict=True)
    np.testing.assert_array_equal(indices, np.array([[0, 0]]), strict=True)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("argmax", [1, 3, 3, 2], 1),
        ("argmin", [2, 1, 3, 1], 1),
        ("argmax", [1, NAN, 3, NAN], 1),
        ("argmin", [1, 3, NAN, 0], 2),
        ("argmax", [-np.inf, -np.inf], 0),
        ("argmin", [np.inf, np.inf], 0),
        ("argmax", [-0.0, 0.0], 0),
        ("argmax", [[1, 2], [5, 4]], 2),
    ],
)
def test_the_position_of_an_extreme_is_that_of_the_first(
    name: str, x: list[Any], expected: int
) -> None:
    array = np.array(x, np.float32)

    result = computed(name, array)
    machine = compiled(name, array, array.shape)

    np.testing.assert_array_equal(result, np.array(expected), strict=True)
    np.testing.assert_array_equal(machine, result, strict=True)


@pytest.mark.parametrize("axis", [0, 1, 2, None])
@pytest.mark.parametrize(("name", "reference"), [("argmax", np.argmax), ("argmin", np.argmin)])
def test_kernels_of_many_elements_find_what_numpy_finds(
    name: str, reference: Any, axis: int | None
) -> None:
    x = np.random.default_rng(0).integers(-40, 40, (19, 5, 37)).astype(np.float32)

    result = compiled(name, x, (19, 5, 37), axis=axis)

    np.testing.assert_array_equal(result, np.asarray(reference(x, axis=axis)), strict=True)


LONG = (1, 31, 32, 33, 129, 1000)


ORDERS: list[tuple[str, dict[str, Attr]]] = [
    ("sort", {"descending": True}),
    ("topk", {"k": 7}),
    ("argsort", {"dtype": "int64"}),
    ("topk", {"k": 1, "ret_type": "indices"}),
    ("topk", {"k": 300, "largest": False, "ret_type": "values"}),
    ("topk", {"k": 0, "ret_type": "indices"}),
]
KEYS = [
    *((name, attrs, "float32") for name, attrs in ORDERS),
    *((*each, dtype) for dtype in ("float16", "uint64", "bool") for each in ORDERS[:2]),
]


@pytest.mark.parametrize(("name", "attrs", "dtype"), KEYS)
def test_kernels_order_rows_of_every_length(name: str, attrs: dict[str, Attr], dtype: str) -> None:
    module = module_of(name, Var("x", tensor((dims.symbol("m"), n), dtype)), **attrs)
    machine = VirtualMachine(build(module))["main"]
    random = np.random.default_rng(0)

    for extent in LONG:
        x = random.integers(0, 50, (2, extent)).astype(dtype)
        if dtype.startswith("float"):
            x[random.random(x.shape) < 0.1] = NAN
        results, expected = machine(x), apply_op(OPS[name], [x], attrs)
        np.testing.assert_equal(results, expected)


@pytest.mark.parametrize("name", ["sort", "argsort", "topk"])
def test_sorting_is_a_loop_function(name: str) -> None:
    legal = legalize_ops(module_of(name, of(n, dims.symbol("m")), axis=0))

    assert [*legal.functions] == ["main", name]


def test_the_batch_of_a_search_may_be_symbolic_and_empty() -> None:
    result = compiled("argmax", np.zeros((0, 3), np.float32), (n, 3), axis=1)

    np.testing.assert_array_equal(result, np.zeros(0, np.int64), strict=True)


@pytest.mark.parametrize("engine", ["interpreter", "native"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("axis", "over"), [(None, "all axes"), (0, "axis 0"), (-1, "axis -1")])
def test_a_position_in_what_may_be_nothing_is_a_kernel_behind_a_check(
    name: str, axis: int | None, over: str, engine: Engine
) -> None:
    legal = legalize_ops(module := module_of(name, of(n, dims.symbol("m")), axis=axis))
    main = VirtualMachine(build(module), engine=engine)["main"]
    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)

    assert [*legal.functions] == ["main", name]
    np.testing.assert_array_equal(main(x), getattr(np, name)(x, axis))
    refused = f'R.{name} of R.Tensor((0, 0), "float32"): needs an element over {over}'
    with pytest.raises(RunError) as error:
        main(x[:0, :0])
    assert str(error.value).endswith(refused)
    with pytest.raises(RunError) as error:
        computed(name, x[:0, :0], axis=axis)
    assert str(error.value) == refused


def test_a_position_where_there_is_an_element_is_not_checked() -> None:
    known, unknown = (legalize_ops(module_of("argmax", of(n, 3), axis=a)) for a in (1, 0))

    assert "check_elements" not in known.script()
    assert "check_elements" in unknown.script()


@pytest.mark.parametrize(
    ("right", "expected"), [(False, [0, 0, 1, 1, 2, 2]), (True, [0, 1, 1, 2, 2, 2])]
)
def test_an_element_belongs_where_the_boundaries_below_it_end(
    right: bool, expected: list[int]
) -> None:
    x = np.array([0, 1, 1.5, 2, 3, NAN])

    result = computed("bucketize", x, [1.0, 2.0], right=right, out_int32=True)

    np.testing.assert_array_equal(result, np.array(expected, np.int32), strict=True)


def test_rules_take_no_dtype_for_granted_that_a_flag_decides() -> None:
    known = operators()

    assert (known["bucketize"].dtype, known["argmax"].dtype) == ("", '"int64"')
    assert (known["argsort"].dtype, known["cumsum"].dtype) == ("dtype", "dtype")


REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    ("sort", (of(),), {}, 'R.sort of R.Tensor((), "float32"): axis -1 is outside of rank 0'),
    (
        "argsort",
        (of(n),),
        {"dtype": "float32"},
        'R.argsort of R.Tensor((n,), "float32"): dtype is "float32", needs one of '
        "int8, int16, int32, int64, uint8, uint16, uint32, uint64",
    ),
    (
        "topk",
        (of(n),),
        {"ret_type": "all"},
        'R.topk of R.Tensor((n,), "float32"): ret_type is "all", '
        'needs "both", "values" or "indices"',
    ),
    (
        "topk",
        (of(n),),
        {"axis": 1},
        'R.topk of R.Tensor((n,), "float32"): axis 1 is outside of rank 1',
    ),
    (
        "argmax",
        (of(n, 0),),
        {"axis": 1},
        'R.argmax of R.Tensor((n, 0), "float32"): needs an element over axis 1',
    ),
    (
        "argmin",
        (of(n, 0),),
        {},
        'R.argmin of R.Tensor((n, 0), "float32"): needs an element over all axes',
    ),
    (
        "bucketize",
        (of(n), of(2, 2)),
        {},
        'R.bucketize of R.Tensor((n,), "float32") and R.Tensor((2, 2), "float32"): '
        "needs boundaries of rank 1",
    ),
    (
        "bucketize",
        (of(n), of(2, dtype="int32")),
        {},
        'R.bucketize of R.Tensor((n,), "float32") and R.Tensor((2,), "int32"): '
        "needs operands of one dtype",
    ),
    (
        "bucketize",
        (of(n, dtype="bool"), of(2, dtype="bool")),
        {},
        'R.bucketize of R.Tensor((n,), "bool"): needs a tensor of numbers',
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_what_has_no_order_is_refused(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as error:
        call(name, *args, **attrs)

    assert str(error.value) == message


UNKNOWN = Var("u", tensor(None, None))
LEAST = dims.minimum(n, 3)


@pytest.mark.parametrize(
    ("name", "args", "attrs", "expected"),
    [
        ("argmax", (of(n, 3),), {"axis": -1, "keepdims": True}, tensor((n, 1), "int64")),
        ("argmax", (UNKNOWN,), {}, tensor((), "int64")),
        ("bucketize", (UNKNOWN, of(3)), {"out_int32": True}, tensor(None, "int32")),
        ("sort", (UNKNOWN,), {"axis": 3}, tensor(None, None)),
        ("argsort", (of(n),), {}, tensor((n,), "int32")),
        (
            "topk",
            (of(n, 4),),
            {"k": 3, "axis": 0},
            TupleStructInfo((tensor((LEAST, 4), "float32"), tensor((LEAST, 4), "int32"))),
        ),
        ("topk", (of(n, 4),), {"k": 5, "ret_type": "values"}, tensor((n, 4), "float32")),
        ("topk", (UNKNOWN,), {"ret_type": "indices"}, tensor(None, "int32")),
    ],
)
def test_of_operands_known_in_part_the_result_is_known_in_part(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], expected: StructInfo
) -> None:
    assert call(name, *args, **attrs).struct_info == expected
