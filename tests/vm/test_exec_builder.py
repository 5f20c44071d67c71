"""`ExecBuilder` checks and formalises what it builds."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from relax_egraph.errors import IllFormed, UnknownFunction
from relax_egraph.vm import ExecBuilder, Executable


def refused(emit: Callable[[ExecBuilder], None], num_inputs: int = 0) -> str:
    """What the builder says of the function ``main`` that `emit` emits; it keeps nothing."""
    ib = ExecBuilder()

    def build() -> None:
        with ib.function("main", num_inputs):
            emit(ib)

    with pytest.raises(IllFormed) as error:
        build()
    assert ib.get() == ExecBuilder().get()
    return str(error.value)


def test_registers_are_renumbered_in_order_of_use() -> None:
    ib = ExecBuilder()

    with ib.function("main", 1):
        ib.emit_call("f", [ib.r(0)], dst=ib.r(10000))
        ib.emit_call("g", [ib.r(10000)], dst=ib.r(77))
        ib.emit_ret(ib.r(77))

    exe = ib.get()
    assert exe["main"].num_registers == 3
    assert exe.as_text() == (
        "@main(arg0):\n"
        "    0  call  f  in: %0  dst: %1\n"
        "    1  call  g  in: %1  dst: %2\n"
        "    2  ret   %2"
    )


def test_a_register_that_no_path_has_written_is_refused() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("f", [ib.r(0), ib.r(3)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    said = refused(emit, 2)

    assert said == ("function 'main': instruction 0: %3 is read before it is written")


def test_a_register_that_only_one_branch_writes_is_refused_after_it() -> None:
    def emit(ib: ExecBuilder) -> None:
        end = ib.label()
        ib.emit_if(ib.r(0), end)
        ib.emit_call("f", dst=ib.r(1))
        ib.place(end)
        ib.emit_ret(ib.r(1))

    said = refused(emit, 1)

    assert said == "function 'main': instruction 2: %1 is read before it is written"


def test_a_loop_is_accepted_and_its_registers_are_followed_around_it() -> None:
    ib = ExecBuilder()

    with ib.function("main", 1):
        again, end = ib.label(), ib.label()
        ib.emit_call("zero", dst=ib.r(1))
        ib.place(again)
        ib.emit_call("more", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_if(ib.r(2), end)
        ib.emit_call("next", [ib.r(1)], dst=ib.r(1))
        ib.emit_goto(again)
        ib.place(end)
        ib.emit_ret(ib.r(1))

    assert ib.get().as_text().splitlines()[3:6] == [
        "    2  if    %2  else: 5",
        "    3  call  next  in: %1  dst: %1",
        "    4  goto  1",
    ]


def test_an_input_that_is_not_used_is_a_warning() -> None:
    ib = ExecBuilder()

    with (
        pytest.warns(UserWarning, match="^function 'main' does not use its inputs: y, z$"),
        ib.function("main", 3, ["x", "y", "z"]),
    ):
        ib.emit_ret(ib.r(0))

    assert ib.get()["main"].params == ("x", "y", "z")


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (3, "function 'main': instruction 0: goes on at 3, outside of 0..1"),
        (-1, "function 'main': instruction 0: goes on at -1, outside of 0..1"),
    ],
)
def test_a_jump_out_of_the_function_is_refused(offset: int, message: str) -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_if(ib.r(0), offset)
        ib.emit_ret(ib.r(0))

    said = refused(emit, 1)

    assert said == message


def test_code_that_runs_off_the_end_is_refused() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("f")

    said = refused(emit)

    assert said == "function 'main': instruction 0: goes on at 1, outside of 0..0"


def test_an_empty_function_is_refused() -> None:
    def emit(ib: ExecBuilder) -> None:
        pass

    said = refused(emit)

    assert said == "function 'main': it has no instructions"


def test_a_label_without_a_place_is_refused() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_if(ib.r(0), ib.label())
        ib.emit_ret(ib.r(0))

    said = refused(emit, 1)

    assert said == "function 'main': instruction 0: no place to go to"


def test_a_label_has_one_place() -> None:
    def emit(ib: ExecBuilder) -> None:
        twice = ib.label()
        ib.place(twice)
        ib.emit_ret(ib.imm(0))
        ib.place(twice)

    said = refused(emit)

    assert said == "the label is placed twice: at instruction 0, and here"


def test_a_label_is_of_one_function() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        label = ib.label()
        ib.place(label)
        ib.emit_ret(ib.imm(0))

    with pytest.raises(IllFormed) as jumped, ib.function("other"):
        ib.emit_goto(label)
    with pytest.raises(IllFormed) as placed, ib.function("other"):
        ib.place(label)
    with pytest.raises(IllFormed) as outside:
        ib.label()

    assert str(jumped.value) == "function 'other': the label is of function 'main'"
    assert str(placed.value) == str(jumped.value)
    assert str(outside.value) == "no function is open: use `with ib.function(name, num_inputs):`"


@pytest.mark.parametrize("origin", ["two\nlines", "\x1b[31m", "\u2028"])
def test_an_origin_is_one_line_of_text(origin: str) -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("f", origin=origin)

    said = refused(emit)

    assert said == f"the origin {origin!r} is not one line of printable text"


def test_a_function_that_failed_leaves_no_origins() -> None:
    ib = ExecBuilder()
    with suppress(IllFormed), ib.function("bad"):
        ib.emit_call("f", origin="lv")

    with ib.function("good"):
        ib.emit_ret(ib.imm(0), origin="zero")

    assert ib.get().origins == ("zero",)


def test_a_constant_that_is_not_there_is_refused() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_ret(ib.c(0))

    said = refused(emit)

    assert said == "function 'main': instruction 0: c[0] of 0 constants"


def test_a_result_goes_to_a_register_or_nowhere() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("f", dst=ib.imm(3))
        ib.emit_ret(ib.imm(3))

    said = refused(emit)

    assert said == (
        "function 'main': instruction 0: the result goes to i3, needs a register or void"
    )


def test_two_functions_of_one_name_are_refused() -> None:
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_ret(ib.imm(0))

    with pytest.raises(IllFormed) as error, ib.function("main"):
        ib.emit_ret(ib.imm(1))

    assert str(error.value) == "function 'main' is defined twice"


def test_instructions_outside_of_a_function_are_refused() -> None:
    ib = ExecBuilder()

    with pytest.raises(IllFormed) as error:
        ib.emit_ret(ib.imm(0))

    assert str(error.value) == ("no function is open: use `with ib.function(name, num_inputs):`")


def test_a_function_inside_another_is_refused() -> None:
    ib = ExecBuilder()

    with pytest.raises(IllFormed) as error, ib.function("main"), ib.function("inner"):
        ib.emit_ret(ib.imm(0))

    assert str(error.value) == "function 'inner' is opened inside 'main'"


def test_parameter_names_are_one_for_each_input() -> None:
    ib = ExecBuilder()

    with pytest.raises(IllFormed) as error, ib.function("main", 2, ["x"]):
        ib.emit_ret(ib.r(0))

    assert str(error.value) == "function 'main': 2 inputs, parameters ('x',), ('',)"


def test_operands_have_ranges() -> None:
    ib = ExecBuilder()

    with pytest.raises(IllFormed) as big:
        ib.imm(1 << 60)
    with pytest.raises(IllFormed) as negative:
        ib.r(-1)

    assert str(big.value) == "the immediate 1152921504606846976 does not fit 61 bits"
    assert str(negative.value) == "register -1 is outside of 0..1048575"


def test_constants_go_into_the_pool_once() -> None:
    ib = ExecBuilder()
    x, y = np.zeros(2), np.zeros(2)

    operands = [
        *(ib.convert_constant(v) for v in (x, y, x)),
        *(ib.convert_constant(v) for v in ((2, 3), "a", (2, 3), "a")),
        *(ib.convert_constant(v) for v in (0.0, -0.0, 0.0)),
        *(ib.convert_constant(v) for v in (np.dtype("int8"), np.dtype("int8"))),
        *(ib.convert_constant(v) for v in (7, 1 << 60, -(1 << 60))),
    ]

    assert list(map(str, operands)) == [
        *("c[0]", "c[1]", "c[0]", "c[2]", "c[3]", "c[2]", "c[3]"),
        *("c[4]", "c[5]", "c[4]", "c[6]", "c[6]"),
        *("i7", "c[7]", "i-1152921504606846976"),
    ]


def test_constants_are_read_only_row_major_and_of_native_byte_order() -> None:
    ib = ExecBuilder()
    given = np.arange(6, dtype=">f4").reshape(2, 3).T

    ib.convert_constant(given)

    constant = ib.get().constants[0]
    assert isinstance(constant, np.ndarray)
    assert (constant.dtype, constant.flags.c_contiguous) == (np.dtype("=f4"), True)
    assert not constant.flags.writeable
    np.testing.assert_array_equal(constant, given)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.array([None]), "an array of object"),
        ([1, 2], "[1, 2]"),
        ((1, 2.0), "(1, 2.0)"),
        (None, "None"),
    ],
)
def test_other_values_are_no_constants(value: object, shown: str) -> None:
    ib = ExecBuilder()

    with pytest.raises(IllFormed) as error:
        ib.convert_constant(value)  # pyright: ignore[reportArgumentType]  # that is the point

    assert str(error.value) == (
        f"{shown} is no constant: needs an array of numbers, a tuple of ints, an int, "
        "a float, a str or a dtype"
    )


def test_a_failed_function_leaves_no_constants_and_no_names() -> None:
    ib = ExecBuilder()
    x = np.zeros(3)
    with suppress(IllFormed), ib.function("bad"):
        ib.emit_call("f", [x, "a"], dst=ib.r(0))

    with ib.function("good"):
        ib.emit_call("g", ["a", x], dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    exe = ib.get()
    assert exe.callees == ("g",)
    assert exe.constants[0] == "a"
    assert len(exe.constants) == 2


def test_the_python_program_builds_the_same_executable() -> None:
    exe = everything()
    scope = {"ExecBuilder": ExecBuilder, "constants": exe.constants}

    exec(exe.as_python(), scope)

    assert scope["executable"] == exe


def everything() -> Executable:
    """An executable that has every instruction, operand and constant."""
    ib = ExecBuilder()
    with ib.function("main", 2, ["x", "flag"], ["R.Tensor", ""]):
        end = ib.label()
        ib.emit_call(
            "f", [np.array([1.5, 2], np.float32), (2, 3), "a", 0.5, np.dtype("int8"), 1 << 62]
        )
        ib.emit_if(ib.r(1), end, origin="r")
        operands = [ib.vm_state(), ib.void_arg(), ib.f("helper"), ib.imm(-3)]
        ib.emit_call("g", operands, ib.r(2), origin="lv (a.py:3:5)")
        ib.emit_goto(1, origin="j")
        ib.place(end)
        ib.emit_ret(ib.r(0), origin="x")
    with ib.function("helper", 1, ["y"], private=True):
        ib.emit_call("main", [ib.r(0), ib.imm(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return ib.get()


def test_everything_is_listed() -> None:
    exe = everything()

    listing = exe.as_text()

    assert listing == (
        "@main(x: R.Tensor, flag):\n"
        "    0  call  f  in: c[0]=float32[2], c[1]=(2, 3), c[2]='a', c[3]=0.5, c[4]=int8, "
        "c[5]=4611686018427387904  dst: void\n"
        "    1  if    %1  else: 4  # r\n"
        "    2  call  g  in: vm, void, @helper, i-3  dst: %2  # lv (a.py:3:5)\n"
        "    3  goto  4  # j\n"
        "    4  ret   %0  # x\n"
        "\n"
        "private @helper(y):\n"
        "    0  call  main  in: %0, i0  dst: %1\n"
        "    1  ret   %1"
    )


def test_everything_is_counted() -> None:
    exe = everything()

    counts = exe.stats()

    assert counts == (
        "executable:\n"
        "  functions (2): main, helper\n"
        "  packed functions (2): f, g\n"
        "  constants (6): dtype 1, float 1, int 1, shape 1, str 1, tensor 1; 8 bytes of tensors\n"
        "  code: 7 instructions, 33 words\n"
        "  kernels: 0 in 0 bytes"
    )


def test_the_python_program_is_readable() -> None:
    exe = everything()

    program = exe.as_python()

    assert program == (
        "ib = ExecBuilder(constants)\n"
        "with ib.function('main', 2, ('x', 'flag'), ('R.Tensor', ''), allow_unused=True):\n"
        "    ib.emit_call('f', [ib.c(0), ib.c(1), ib.c(2), ib.c(3), ib.c(4), ib.c(5)])\n"
        "    ib.emit_if(ib.r(1), 3, origin='r')\n"
        "    ib.emit_call('g', [ib.vm_state(), ib.void_arg(), ib.f('helper'), ib.imm(-3)], "
        "dst=ib.r(2), origin='lv (a.py:3:5)')\n"
        "    ib.emit_goto(1, origin='j')\n"
        "    ib.emit_ret(ib.r(0), origin='x')\n"
        "with ib.function('helper', 1, ('y',), ('',), private=True, allow_unused=True):\n"
        "    ib.emit_call('main', [ib.r(0), ib.imm(0)], dst=ib.r(1))\n"
        "    ib.emit_ret(ib.r(1))\n"
        "executable = ib.get()\n"
    )


def test_a_function_that_is_not_there_is_a_key_error_of_ours() -> None:
    exe = everything()

    with pytest.raises(UnknownFunction) as error:
        _ = exe["mian"]

    assert isinstance(error.value, KeyError)
    assert str(error.value) == (
        "no function 'mian' in the executable; there are: main, helper; did you mean main?"
    )
