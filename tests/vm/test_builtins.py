"""The builtins: shapes, memory, data, and the checks of what struct info claims."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.ir import dims
from relax_egraph.vm import ExecBuilder, VirtualMachine
from relax_egraph.vm.dim_program import compile_dim, compile_stores
from relax_egraph.vm.exec_builder import Value
from relax_egraph.vm.matching import describe

WHERE = "main: parameter x"


def run(name: str, values: Sequence[Any], constants: Sequence[Value] = ()) -> Any:
    """The result of ``vm.builtin.<name>(*values, *constants)``."""
    ib = ExecBuilder()
    with ib.function("main", len(values)):
        args = [*map(ib.r, range(len(values))), *constants]
        ib.emit_call(f"vm.builtin.{name}", args, dst=ib.r(99))
        ib.emit_ret(ib.r(99))
    main = VirtualMachine(ib.get())["main"]
    return main(*values)


def fails(name: str, values: Sequence[Any], constants: Sequence[Value] = ()) -> str:
    with pytest.raises(RunError) as error:
        run(name, values, constants)
    return str(error.value)


def refused(name: str, values: Sequence[Any], constants: Sequence[Value]) -> str:
    with pytest.raises(ExecutableError) as error:
        run(name, values, constants)
    return str(error.value)


def on_a_heap(
    extents: Sequence[int], name: str, values: Sequence[Any], constants: Sequence[Value]
) -> str:
    """What ``vm.builtin.<name>(*values, heap, *constants)`` fails with, of a heap of `extents`."""
    ib = ExecBuilder()
    heap = ib.r(98)
    with ib.function("main", len(values), allow_unused=True):
        ib.emit_call("vm.builtin.alloc_shape_heap", [len(extents)], dst=heap)
        ib.emit_call("vm.builtin.store_shape", [tuple(extents), heap, *range(len(extents))])
        args = [*map(ib.r, range(len(values))), heap, *constants]
        ib.emit_call(f"vm.builtin.{name}", args, dst=ib.r(99))
        ib.emit_ret(ib.r(99))
    with pytest.raises(RunError) as error:
        VirtualMachine(ib.get())["main"](*values)
    return str(error.value)


def test_shapes_go_through_the_heap() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.alloc_shape_heap", [3], dst=ib.r(1))
        ib.emit_call("vm.builtin.shape_of", [ib.r(0)], dst=ib.r(2))
        ib.emit_call("vm.builtin.store_shape", [ib.r(2), ib.r(1), 1, 0])
        ib.emit_call("vm.builtin.compute_shapes", [ib.r(1), 2, "@1 * 4 - @0 // 2"])
        ib.emit_call("vm.builtin.load_shape", [ib.r(1), 0, 1, 2], dst=ib.r(3))
        ib.emit_call("vm.builtin.make_shape", [ib.r(1), "@2", "8"], dst=ib.r(4))
        ib.emit_call("vm.builtin.load_prim", [ib.r(1), 2], dst=ib.r(5))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(3), ib.r(4), ib.r(5)], dst=ib.r(6))
        ib.emit_ret(ib.r(6))

    result = VirtualMachine(ib.get())["main"](np.zeros((5, 3)))

    assert result == ((3, 5, 19), (19, 8), 19)


def test_dimensions_are_computed_one_after_the_other() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.alloc_shape_heap", [4], dst=ib.r(1))
        ib.emit_call("vm.builtin.store_shape", [ib.r(0), ib.r(1), 0, 1])
        stores = [2, "@0 * @1 + 1", 3, "@2 * 2", 0, "@0 * @1", 1, "@0 - min(@3, 5)"]
        ib.emit_call("vm.builtin.compute_shapes", [ib.r(1), *stores])
        ib.emit_call("vm.builtin.load_shape", [ib.r(1), 0, 1, 2, 3], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    assert VirtualMachine(ib.get())["main"]((3, 4)) == (12, 7, 13, 26)


def test_each_call_has_a_heap_of_its_own() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("vm.builtin.alloc_shape_heap", [2], dst=ib.r(0))
        ib.emit_call("vm.builtin.compute_shapes", [ib.r(0), 0, "@0 + 1"])
        ib.emit_call("vm.builtin.load_shape", [ib.r(0), 0, 1], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    main = VirtualMachine(ib.get())["main"]

    results = [main(), main()]

    assert results == [(1, 0), (1, 0)]


@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (0, 7), (1, 1, 5)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "float64"])
def test_tensors_lie_aligned_in_their_storage(shape: tuple[int, ...], dtype: str) -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("vm.builtin.size_of", [shape, dtype], dst=ib.r(0))
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), ib.r(0)], dst=ib.r(1))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(1), 0, shape, dtype], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    tensor = VirtualMachine(ib.get())["main"]()

    assert (tensor.shape, tensor.dtype.name) == (shape, dtype)
    assert not tensor.size or tensor.ctypes.data % 64 == 0
    assert tensor.flags.c_contiguous
    assert tensor.flags.writeable


def test_two_tensors_share_a_storage() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), 64], dst=ib.r(0))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(0), 0, (8,), "float64"], dst=ib.r(1))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(0), 16, (2,), "float64"], dst=ib.r(2))
        ib.emit_call("vm.builtin.kill", [ib.r(0)], dst=ib.r(0))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))

    killed, whole, part = VirtualMachine(ib.get())["main"]()

    part[:] = (1, 2)
    assert killed is None
    np.testing.assert_array_equal(whole[2:4], [1, 2])


def test_memory_that_is_not_there_is_an_error() -> None:
    storage = np.zeros(16, np.uint8)

    messages = [
        fails("alloc_tensor", [storage, 8, (3,)], ["float32"]),
        fails("alloc_tensor", [storage, -4, (1,)], ["float32"]),
        fails("alloc_tensor", [storage, 0, (-1,)], ["float32"]),
        fails("alloc_tensor", [storage, 0, (1,) * 100], ["float32"]),
        fails("alloc_storage", [None, -1]),
    ]

    assert messages == [
        "a tensor of float32[3] at byte 8 does not fit a storage of 16 bytes",
        "a tensor of float32[1] at byte -4 does not fit a storage of 16 bytes",
        "vm.builtin.alloc_tensor: operand shape is R.Shape((-1,)), "
        "needs a shape, no extent negative",
        "a tensor of R.Shape(ndim=100): maximum supported dimension for an ndarray is "
        "currently 64, found 100",
        "a storage of -1 bytes cannot be allocated",
    ]


def test_reshape_is_a_view() -> None:
    x = np.arange(6)

    result = run("reshape", [x], [(2, 3)])

    assert np.shares_memory(result, x)
    np.testing.assert_array_equal(result, [[0, 1, 2], [3, 4, 5]])


def test_reshape_to_another_number_of_elements_is_an_error() -> None:
    message = fails("reshape", [np.zeros((2, 3))], [(4,)])

    assert message == ('R.reshape of R.Tensor((2, 3), "float64") to (4,): 6 elements do not fill 4')


def test_reshape_to_a_negative_extent_is_an_error() -> None:
    message = fails("reshape", [np.zeros((2, 0))], [(0, -1)])

    assert message == ('R.reshape of R.Tensor((2, 0), "float64") to (0, -1): an extent is negative')


def test_unique_gives_the_distinct_elements_in_order() -> None:
    result = run("unique", [np.array([3, 1, 3, 2, 1])])

    np.testing.assert_array_equal(result, [1, 2, 3])


def test_the_condition_of_an_if_is_a_boolean_scalar() -> None:
    values = [run("read_if_cond", [np.array(v)]) for v in (True, False)]
    message = fails("read_if_cond", [np.zeros(2, bool)])

    assert values == [True, False]
    assert message == (
        'the condition of an if is R.Tensor((2,), "bool"), needs R.Tensor((), "bool")'
    )


def test_what_is_no_function_is_not_called() -> None:
    message = fails("invoke_closure", [3])

    assert message == "cannot call 3"


def test_a_program_may_fail_with_a_message() -> None:
    message = fails("fatal", [], ["no case fits"])

    assert message == "no case fits"


# --- checks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (np.zeros((2, 3), np.float64), 'R.Tensor((2, 3), "float64")'),
        (np.zeros(2, np.float32), 'R.Tensor((2,), "float32")'),
        ((2, 3), "R.Shape((2, 3))"),
        ((np.zeros(2),), 'R.Tuple(R.Tensor((2,), "float64"))'),
        (3, "3"),
        (None, "None"),
        ("text", "an object of type str"),
    ],
)
def test_what_is_no_such_tensor_is_an_error(value: Any, got: str) -> None:
    expected = 'R.Tensor((n, 3), "float32")'

    message = fails("check_tensor_info", [value], [WHERE, expected, 2, "float32"])

    assert message == f"{WHERE}: expected {expected}, got {got}"


def test_rank_and_dtype_may_be_any() -> None:
    values = [np.zeros(()), np.zeros((2, 3), np.int8)]

    results = [run("check_tensor_info", [v], [WHERE, "R.Tensor", -1, ""]) for v in values]

    assert results == [None, None]


def test_shapes_and_tuples_are_checked() -> None:
    messages = [
        fails("check_shape_info", [(1, 2)], [WHERE, "R.Shape(ndim=1)", 1]),
        fails("check_shape_info", [np.zeros(1)], [WHERE, "R.Shape", -1]),
        fails("check_tuple_info", [(1,)], [WHERE, "R.Tuple(R.Object, R.Object)", 2]),
    ]

    assert run("check_shape_info", [(1, 2)], [WHERE, "R.Shape", -1]) is None
    assert run("check_tuple_info", [(1,)], [WHERE, "R.Tuple(R.Object)", 1]) is None
    assert messages == [
        f"{WHERE}: expected R.Shape(ndim=1), got R.Shape((1, 2))",
        f'{WHERE}: expected R.Shape, got R.Tensor((1,), "float64")',
        f"{WHERE}: expected R.Tuple(R.Object, R.Object), got R.Shape((1,))",
    ]


def match(shape: tuple[int, ...], *patterns: str) -> tuple[int, ...]:
    """The heap ``(10, 20, 30)`` after the match."""
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.alloc_shape_heap", [3], dst=ib.r(1))
        ib.emit_call("vm.builtin.store_shape", [(10, 20, 30), ib.r(1), 0, 1, 2])
        args = [ib.r(0), ib.r(1), WHERE, "R.Tensor(…)", *patterns]
        ib.emit_call("vm.builtin.match_shape", args)
        ib.emit_call("vm.builtin.load_shape", [ib.r(1), 0, 1, 2], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    return VirtualMachine(ib.get())["main"](np.zeros(shape, np.int8))


def test_extents_are_stored_and_compared() -> None:
    heaps = [
        match((5, 4, 30), "n -> @0", "4", "k == @2"),
        match((7, 9), "_", "m -> @1"),
        match((5, 5), "n -> @0", "n == @0"),
    ]

    assert heaps == [(5, 20, 30), (10, 9, 30), (5, 20, 30)]


@pytest.mark.parametrize(
    ("shape", "patterns", "found"),
    [
        ((5, 4), ("n -> @0", "3"), ": dimension 1 is 4, needs 3"),
        ((5, 4), ("n * 2 == @1", "4"), ": dimension 0 is 5, needs n * 2 = 20"),
        ((5, 4), ("n -> @0", "n == @0"), ": dimension 1 is 4, needs n = 5"),
        ((5, 4), ("n -> @0",), ""),
    ],
)
def test_another_extent_is_an_error(
    shape: tuple[int, ...], patterns: tuple[str, ...], found: str
) -> None:
    with pytest.raises(RunError) as error:
        match(shape, *patterns)

    assert str(error.value) == (
        f'{WHERE}: expected R.Tensor(…), got R.Tensor((5, 4), "int8"){found}'
    )


def test_integers_are_matched() -> None:
    messages = [
        fails("match_prim", [3.5, None], [WHERE, "R.Prim(value=n)", "_"]),
        fails("match_prim", [3, None], [WHERE, "R.Prim(value=4)", "4"]),
        fails("match_prim", [3, [7]], [WHERE, "R.Prim(value=n)", "n == @0"]),
    ]
    heap = on_a_heap([7], "match_prim", [3], [WHERE, "R.Prim(value=n)", "n == @0"])

    assert run("match_prim", [np.int64(3), None], [WHERE, "R.Prim", "3"]) is None
    assert messages == [
        f"{WHERE}: expected R.Prim(value=n), got 3.5",
        f"{WHERE}: expected R.Prim(value=4), got 3",
        f"{WHERE}: expected a shape heap of 1 slots or more, got R.Shape((7,))",
    ]
    assert heap == f"{WHERE}: expected R.Prim(value=n), got 3, needs n = 7"


def test_describe_writes_types_as_script_does() -> None:
    described = describe((np.zeros(2), (np.zeros((), bool), 1.5), ()))

    assert described == (
        'R.Tuple(R.Tensor((2,), "float64"), R.Tuple(R.Tensor((), "bool"), 1.5), R.Shape(()))'
    )


# --- texts ----------------------------------------------------------------------------

SYMBOLS = [dims.symbol(f"@{i}") for i in range(3)]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> dims.Dim:
    if depth == 0 or draw(st.booleans()):
        return draw(st.one_of(st.integers(0, 9), st.sampled_from(SYMBOLS)))
    a, b = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    operations = [dims.add, dims.mul, dims.minimum, dims.maximum]
    by = draw(st.integers(1, 5))
    kind = draw(st.integers(0, 5))
    if kind == 4:
        return dims.floordiv(a, by)
    return dims.mod(a, by) if kind == 5 else operations[kind](a, b)


@settings(max_examples=150, deadline=None)
@given(expressions(), st.lists(st.integers(0, 50), min_size=3, max_size=3))
def test_a_text_evaluates_to_the_dimension(dim: dims.Dim, heap: list[int]) -> None:
    try:
        text = dims.text(dim)
    except ValueError:  # sympy made of it what has no text
        return

    value = compile_dim(text)(heap)

    assert value == dims.evaluate(dim, {f"@{i}": v for i, v in enumerate(heap)})


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), expressions()), max_size=6),
    st.lists(st.integers(-50, 50), min_size=5, max_size=5),
)
def test_texts_are_stored_as_if_each_was_evaluated_by_itself(
    stores: list[tuple[int, dims.Dim]], heap: list[int]
) -> None:
    try:
        texts = [dims.text(dim) for _, dim in stores]
    except ValueError:  # sympy made of it what has no text
        return
    slots = [slot for slot, _ in stores]
    expected, found = list(heap), list(heap)

    for slot, text in zip(slots, texts, strict=True):
        expected[slot] = compile_dim(text)(expected)
    compile_stores(slots, texts)(found)

    assert found == expected


def test_division_by_zero_is_an_error() -> None:
    messages = [
        on_a_heap([12, 0], "compute_shapes", [], [0, "@0 // @1"]),
        on_a_heap([12, 0], "compute_shapes", [], [1, "@0 - 12", 0, "7 % @1"]),
        on_a_heap([12, 0], "make_shape", [], ["4", "@0 // @1"]),
    ]

    assert messages == [
        "the dimension 12 // 0 divides by zero",
        "the dimension 7 % 0 divides by zero",
        "the dimension 12 // 0 divides by zero",
    ]


def test_slots_that_are_not_there_are_an_error() -> None:
    messages = [
        on_a_heap([5], "compute_shapes", [], [3, "@0"]),
        on_a_heap([5], "compute_shapes", [], [0, "@0 + @2"]),
        on_a_heap([5], "load_shape", [], [0, 1]),
        on_a_heap([5], "store_shape", [(2, 3)], [0, 1]),
        on_a_heap([5], "match_shape", [(2, 3)], [WHERE, "R.Shape((n, m))", "n -> @0", "m -> @1"]),
    ]

    assert messages == [
        "slot 3 of a shape heap of 1 slots",
        "slot 2 of a shape heap of 1 slots",
        "slot 1 of a shape heap of 1 slots",
        "vm.builtin.store_shape: operand heap is a shape heap, needs a shape heap with a slot 1",
        f"{WHERE}: expected a shape heap of 2 slots or more, got one of 1",
    ]


def test_an_operand_that_does_not_match_is_refused_in_the_words_of_its_operator() -> None:
    refusal = "R.add of {@1} and {@0} elements"

    messages = [
        on_a_heap([5, 6], "match_operand", [(2, 3)], [refusal, "_", "n == @0"]),
        on_a_heap([5], "match_operand", [(2, 3)], [refusal, "2", "4"]),
    ]

    assert messages == [
        "R.add of 6 and 5 elements",
        "the check of an operand: expected a shape heap of 2 slots or more, got one of 1",
    ]


def test_dimensions_do_not_grow_without_end() -> None:
    squares = [v for _ in range(60) for v in (0, "@0 * @0")]

    message = on_a_heap([3], "compute_shapes", [], squares)

    assert message == "the dimension @0 * @0 has 1624 bits"


@pytest.mark.parametrize(
    "text",
    [
        *("", "@", "@x", "n * 2", "@0 ** 2", "@0 if @1 else 2", "heap", "heap[0:1]", "1.5"),
        *("print(1, 2)", "min(@0)", "min(*heap, 1)", "min(1, 2, key=3)", "(1, 2)", "@0, @1"),
        *("__import__('os')", "[1][0]", "True", "@0 ; 1", "@0) + (1", "(" * 5000, "-" * 20_000),
        "1 if (heap := 3) else 4",
    ],
)
def test_other_texts_are_no_dimensions(text: str) -> None:
    said = f"section code: `{text[:60]}` is no dimension"

    with pytest.raises(ExecutableError) as error:
        compile_dim(text)
    with pytest.raises(ExecutableError) as another:
        compile_stores([0], [text])

    assert [str(error.value), str(another.value)] == [said, said]


@pytest.mark.parametrize(
    ("name", "values", "constants", "message"),
    [
        ("make_shape", [[1]], ["n"], "`n` is no dimension"),
        ("load_prim", [[1]], ["a"], "operand slot is an object of type str, needs an integer"),
        ("load_prim", [[1]], [-1], "slot -1 of a heap of at most 1048576"),
        ("compute_shapes", [[1]], [0, 7], "the dimension 7 is no string"),
        ("compute_shapes", [[1]], ["0", "@0"], "slot '0' of a heap of at most 1048576"),
        ("match_shape", [(1,), [1]], [WHERE, "", "n"], "`n` is no pattern of a dimension"),
        (
            "match_shape",
            [(1,), [1]],
            [WHERE, "", "n == 3"],
            "`n == 3` is no pattern of a dimension",
        ),
        ("alloc_tensor", [0, 0, 0], ["half"], "no dtype 'half'"),
        ("size_of", [(1,)], ["object"], "no dtype 'object'"),
        ("alloc_shape_heap", [], [-1], "a shape heap of -1 slots, needs 0 to 1048576"),
        (
            "alloc_shape_heap",
            [],
            [1 << 40],
            "a shape heap of 1099511627776 slots, needs 0 to 1048576",
        ),
    ],
)
def test_wrong_constants_are_refused_at_load(
    name: str, values: Sequence[Any], constants: Sequence[Value], message: str
) -> None:
    said = refused(name, values, constants)

    assert said == (f"section code: function 'main': instruction 0: vm.builtin.{name}: {message}")


def test_a_wrong_number_of_constants_is_refused_at_load() -> None:
    at = "section code: function 'main': instruction 0: vm.builtin"

    messages = [
        refused("compute_shapes", [[1]], [0]),
        refused("load_prim", [[1]], []),
        refused("check_tensor_info", [[1]], ["where", "what", 2]),
        refused("tuple_getitem", [(1,), 0, 0], []),
        refused("make_closure", [], []),
        refused("invoke_closure", [], []),
    ]

    assert messages == [
        f"{at}.compute_shapes: takes a slot before each dimension",
        f"{at}.load_prim: takes 2 operands (heap, slot), got 1",
        f"{at}.check_tensor_info: takes 5 operands (value, where, expected, ndim, dtype), got 4",
        f"{at}.tuple_getitem: takes 2 operands (value, index), got 3",
        f"{at}.make_closure: takes at least 1 operand (function, *captured), got 0",
        f"{at}.invoke_closure: takes at least 1 operand (closure, *args), got 0",
    ]
