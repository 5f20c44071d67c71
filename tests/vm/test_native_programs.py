"""From bytecode to native programs: what is computed, where things lie, what has no native form."""

from collections.abc import Callable

import pytest

from relax_egraph.vm import ExecBuilder
from relax_egraph.vm.bytecode import Operand
from relax_egraph.vm.native.builtins import NATIVE_BUILTINS
from relax_egraph.vm.native.program import KernelType
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.segments import native_function
from relax_egraph.vm.native.tracer import Callees

KERNELS = {
    "add": KernelType(("float32",) * 3, 1, 1),
    "relu": KernelType(("float32", "float32"), 1, 1),
    "test": KernelType(("float32", "bool"), 1, 1),
}


class Code(ExecBuilder):
    """A builder of ``main(x)``, whose `x` has n float32 elements; n is in %2, 4·n in %3."""

    def begin(self) -> Operand:
        x, heap, n, size = map(self.r, range(4))
        self.call("check_tensor_info", x, "x", "t", 1, "float32")
        self.call("alloc_shape_heap", 2, dst=heap)
        self.call("match_shape", x, heap, "x", "t", "n -> @0")
        self.call("compute_shapes", heap, 1, "@0 * 4")
        self.call("load_prim", heap, 0, dst=n)
        self.call("load_prim", heap, 1, dst=size)
        return x

    def call(self, name: str, *args: Operand | int | str, dst: Operand | None = None) -> None:
        operands = [self.convert_constant(a) for a in args]
        target = self.void_arg() if dst is None else dst
        self.emit_call(name if name in KERNELS else f"vm.builtin.{name}", operands, target)

    def vector(self, register: int) -> Operand:
        """A new tensor of n elements."""
        result = self.r(register)
        self.call("alloc_storage", self.vm_state(), self.r(3), dst=result)
        self.call("make_shape", self.r(1), "@0", dst=self.r(50))
        self.call("alloc_tensor", result, 0, self.r(50), "float32", dst=result)
        return result

    def relu(self, x: Operand, register: int) -> Operand:
        result = self.vector(register)
        self.call("relu", x, result, self.r(2))
        return result


def callees(code: Code) -> Callees:
    return Callees(code.get(), KERNELS, NATIVE_BUILTINS)


def text(write: Callable[[Code], None]) -> str:
    """The program of ``main(x)``."""
    code = Code()
    with code.function("main", 1, ["x"], allow_unused=True):
        write(code)
    found = callees(code)
    return str(native_function(found, found.functions["main"], 100))


def refusal(write: Callable[[Code], None]) -> str:
    with pytest.raises(Refused) as error:
        text(write)
    return str(error.value)


def relu_chain(code: Code, length: int) -> Operand:
    x = code.begin()
    for register in range(10, 10 + length):
        x = code.relu(x, register)
    return x


def branching(code: Code, cond: Operand, true: int, false: int) -> None:
    """`main` returns a vector after so many calls of one kernel or another."""
    result, otherwise, end = code.r(40), code.label(), code.label()
    code.call("read_if_cond", cond, dst=code.r(41))
    code.emit_if(code.r(41), otherwise)
    for count, start in ((true, 10), (false, 20)):
        x = code.r(0)
        for register in range(start, start + count):
            x = code.relu(x, register)
        code.call("copy", x, dst=result)
        if start == 10:
            code.emit_goto(end)
            code.place(otherwise)
    code.place(end)
    code.emit_ret(result)


def flag_of(code: Code) -> Operand:
    """What the kernel ``test`` says of `x`."""
    x, flag = code.begin(), code.r(30)
    code.call("alloc_storage", code.vm_state(), 1, dst=flag)
    code.call("alloc_tensor", flag, 0, code.convert_constant(()), "bool", dst=flag)
    code.call("test", x, flag, code.r(2))
    return flag


def listing(*lines: str) -> str:
    return "\n  ".join(lines)


# --- what programs are ----------------------------------------------------------------


def test_checks_and_memory_come_before_kernels() -> None:
    def write(code: Code) -> None:
        y = relu_chain(code, 3)
        code.call("match_shape", y, code.r(1), "y", "t", "8")
        code.emit_ret(y)

    assert text(write) == listing(
        "main: 1 arguments, 10 words, 1 objects",
        "%2 = 8",
        "%4 = 4",
        "array    %0 argument 0 float32 writable 0",
        "extents  %1 argument 0 rank 1",
        "equal    %1 %2",
        "multiply %5 %1 %4",
        "result   @0 %3 float32 %5 %1",
        "align    %6 %5",
        "add      %7 %6 %6",
        "arena    %8 arena 0 %7",
        "add      %9 %8 %6",
        "release",
        "kernel   relu %0 %8 %1",
        "kernel   relu %8 %9 %1",
        "kernel   relu %9 %3 %1",
        "acquire",
        "return   @0",
    )


def test_storages_share_places_when_they_are_not_needed_at_once() -> None:
    def write(code: Code) -> None:
        code.emit_ret(relu_chain(code, 6))

    program = text(write)

    assert program.endswith(
        listing(
            "arena    %7 arena 0 %6",
            "add      %8 %7 %5",
            "release",
            "kernel   relu %0 %7 %1",
            "kernel   relu %7 %8 %1",
            "kernel   relu %8 %7 %1",
            "kernel   relu %7 %8 %1",
            "kernel   relu %8 %7 %1",
            "kernel   relu %7 %2 %1",
            "acquire",
            "return   @0",
        )
    )


def test_views_that_leave_share_a_storage() -> None:
    def write(code: Code) -> None:
        x = code.begin()
        y, shape, column, packed = code.relu(x, 10), code.r(20), code.r(21), code.r(22)
        code.call("make_shape", code.r(1), "@0", "1", dst=shape)
        code.call("reshape", y, shape, dst=column)
        code.call("make_tuple", y, column, x, dst=packed)
        code.emit_ret(packed)

    assert text(write) == listing(
        "main: 1 arguments, 6 words, 5 objects",
        "%3 = 4",
        "%5 = 1",
        "array    %0 argument 0 float32 writable 0",
        "extents  %1 argument 0 rank 1",
        "multiply %4 %1 %3",
        "storage  @0 %2 %4",
        "view     @1 @0 float32 %2 %1",
        "view     @2 @0 float32 %2 %1 %5",
        "argument @3 argument 0",
        "tuple    @4 @1 @2 @3",
        "release",
        "kernel   relu %0 %2 %1",
        "acquire",
        "return   @4",
    )


def test_branches_write_the_same_result() -> None:
    assert text(lambda code: branching(code, flag_of(code), 2, 1)) == listing(
        "main: 1 arguments, 10 words, 1 objects",
        "%3 = 4",
        "%5 = 64",
        "array    %0 argument 0 float32 writable 0",
        "extents  %1 argument 0 rank 1",
        "multiply %4 %1 %3",
        "result   @0 %2 float32 %4 %1",
        "align    %6 %4",
        "add      %7 %5 %6",
        "arena    %8 arena 0 %7",
        "add      %9 %8 %5",
        "release",
        "kernel   test %0 %8 %1",
        "unless   instruction 14 %8",
        "kernel   relu %0 %9 %1",
        "kernel   relu %9 %2 %1",
        "jump     instruction 15",
        "kernel   relu %0 %2 %1",
        "acquire",
        "return   @0",
    )


def test_a_branch_on_a_dimension_needs_no_tensor() -> None:
    def write(code: Code) -> None:
        code.begin()
        code.call("prim_less_equal", code.r(2), 32, dst=code.r(30))
        branching(code, code.r(30), 1, 1)

    program = text(write)

    assert "unless_at_most instruction 8 %1 %5" in program
    assert "arena" not in program


def test_functions_are_followed() -> None:
    code = Code()
    with code.function("twice", 4):
        y = code.r(4)
        code.call("copy", code.r(0), dst=y)
        code.call("relu", y, code.r(1), code.r(2))
        code.call("relu", code.r(1), code.r(3), code.r(2))
        code.emit_ret(code.r(3))
    with code.function("main", 1, ["x"]):
        x = code.begin()
        args = [x, code.vector(10), code.r(2), code.vector(11)]
        code.emit_call("twice", args, code.r(12))
        code.emit_ret(code.r(12))
    found = callees(code)

    program = str(native_function(found, found.functions["main"], 100))

    assert program.endswith(
        "kernel   relu %0 %6 %1\n  kernel   relu %6 %2 %1\n  acquire\n  return   @0"
    )


def test_a_function_that_calls_itself_in_its_own_place_is_a_loop() -> None:
    """Turns allocate from two arenas in turn, and what is returned is copied at the end."""

    def write(code: Code) -> None:
        flag = flag_of(code)
        code.call("read_if_cond", flag, dst=code.r(31))
        end = code.label()
        code.emit_if(code.r(31), end)
        code.emit_call("main", [code.relu(code.r(0), 10)], code.r(11))
        code.emit_ret(code.r(11))
        code.place(end)
        code.emit_ret(code.r(0))

    assert text(write) == listing(
        "main: 1 arguments, 14 words, 1 objects",
        "%2 = 1",
        "%5 = 64",
        "%7 = 4",
        "%11 = 0",
        "array    %0 argument 0 float32 writable 0",
        "extents  %1 argument 0 rank 1",
        "release",
        "move     %3 %0",
        "move     %4 %2",
        "next_arena %6 arena 0 %5",
        "kernel   test %3 %6 %1",
        "unless   instruction 15 %6",
        "multiply %8 %1 %7",
        "align    %9 %8",
        "next_arena %10 arena 2 %9",
        "kernel   relu %3 %10 %1",
        "move     %3 %10",
        "move     %4 %11",
        "turn     instruction 5",
        "acquire",
        "equal    %4 %11",
        "multiply %13 %1 %7",
        "result   @0 %12 float32 %13 %1",
        "copy     %12 %3 %13",
        "return   @0",
    )


# --- what has no native form ----------------------------------------------------------


def returns(code: Code, name: str, *args: Operand | int | str) -> None:
    """`main` ends with a call of a builtin or kernel."""
    code.call(name, *args, dst=code.r(45))
    code.emit_ret(code.r(45))


def endless_loop(code: Code) -> None:
    code.begin()
    again = code.label()
    code.place(again)
    code.call("copy", code.r(0), dst=code.r(10))
    code.emit_goto(again)


def loop_entered_in_its_middle(code: Code) -> None:
    code.begin()
    again, middle = code.label(), code.label()
    code.emit_goto(middle)
    code.place(again)
    code.call("copy", code.r(0), dst=code.r(10))
    code.place(middle)
    code.emit_goto(again)


def recursion(code: Code) -> None:
    code.emit_call("main", [code.r(0)], code.r(10))
    code.call("make_tuple", code.r(10), dst=code.r(11))
    code.emit_ret(code.r(11))


def one_dtype_or_another(code: Code) -> None:
    x, again = code.begin(), code.label()
    code.call("copy", x, dst=code.r(10))
    code.place(again)
    flag = flag_of(code)
    code.call("read_if_cond", flag, dst=code.r(31))
    code.call("make_tuple", code.r(10), dst=code.r(32))
    code.call("copy", flag, dst=code.r(10))
    code.emit_if(code.r(31), again)
    code.emit_ret(code.r(32))


def store_into_what_is_carried(code: Code) -> None:
    x, again = code.begin(), code.label()
    code.call("copy", x, dst=code.r(10))
    code.place(again)
    flag = flag_of(code)
    code.call("read_if_cond", flag, dst=code.r(31))
    code.call("relu", x, code.r(10), code.r(2))
    code.call("copy", code.vector(11), dst=code.r(10))
    code.emit_if(code.r(31), again)
    code.emit_ret(x)


def shape_for_a_tensor(code: Code) -> None:
    code.begin()
    code.vector(10)
    returns(code, "relu", code.r(0), code.r(50), code.r(2))


def too_large_a_tensor(code: Code) -> None:
    code.call("alloc_storage", code.vm_state(), 8, dst=code.r(10))
    returns(code, "alloc_tensor", code.r(10), 0, code.convert_constant((4,)), "float32")


def beyond_the_heap(code: Code) -> None:
    code.begin()
    returns(code, "load_prim", code.r(1), 2)


def beyond_the_tuple(code: Code) -> None:
    code.call("make_tuple", code.begin(), dst=code.r(30))
    returns(code, "tuple_getitem", code.r(30), -1)


def many_axes(code: Code) -> None:
    shape = code.convert_constant((1,) * 65)
    returns(code, "reshape", code.begin(), shape)


REFUSALS: dict[str, tuple[Callable[[Code], None], str]] = {
    "a loop without an end": (endless_loop, "a function that does not return"),
    "a loop with two entries": (loop_entered_in_its_middle, "a loop that is entered in its middle"),
    "recursion": (recursion, "recursion"),
    "one dtype or another": (
        one_dtype_or_another,
        "a tensor of float32, needs bool",
    ),
    "a store into what is carried": (
        store_into_what_is_carried,
        "a store into a loop-carried tensor",
    ),
    "one of two": (
        lambda code: branching(code, flag_of(code), 1, 0),
        "a value with different kinds after a branch",
    ),
    "what may be no tensor": (
        lambda code: returns(code, "shape_of", code.r(0)),
        "argument 0 as a tensor",
    ),
    "a shape for a tensor": (shape_for_a_tensor, "a tensor is needed"),
    "an integer for a shape": (
        lambda code: returns(code, "reshape", flag_of(code), code.r(2)),
        "a shape is needed",
    ),
    "another dtype": (
        lambda code: returns(code, "relu", flag_of(code), flag_of(code), 1),
        "a tensor of bool, needs float32",
    ),
    "too large a tensor": (too_large_a_tensor, "16 is more than 8"),
    "beyond the heap": (beyond_the_heap, "slot 2 of a heap of 2"),
    "too many axes": (many_axes, "a tensor of 65 axes"),
    "beyond the tuple": (beyond_the_tuple, "a field of a tuple of 1"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_not_proven_safe_is_refused(what: str) -> None:
    write, reason = REFUSALS[what]

    assert refusal(write) == reason


def test_work_is_bounded() -> None:
    code = Code()
    for number in range(30):
        with code.function(f"f{number}", 1):
            for register in (1, 2):
                callee = f"f{number - 1}" if number else "vm.builtin.copy"
                code.emit_call(callee, [code.r(0)], code.r(register))
            code.emit_ret(code.r(2))
    found = callees(code)

    with pytest.raises(Refused, match="too many instructions"):
        native_function(found, found.functions["f29"], 100)
