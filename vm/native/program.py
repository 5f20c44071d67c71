"""Native programs: the code that the driver, a routine in machine code, runs for a function.

A program works on a frame of 64-bit words, ``%3``, some of which are constants.  The objects that
it creates are in the last words of the frame, ``@0``; the driver releases them at exit.  An
instruction whose check fails leaves the call to the interpreter: no effect before is visible from
outside.

    array    %4  argument 0 float32          the address of its elements
    extents  %5  argument 0 rank 2           %5, %6: its extents
    equal    %6 %1
    …
    release                                  the interpreter's lock
    kernel   fused_matmul_add %4 %2 %9 %5
    acquire
    return   @0
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, TypeAlias


class Op(IntEnum):
    """The opcode of an instruction; `OPERANDS` describes its operands."""

    ARRAY = 0
    EXTENTS = 1
    INTEGER = 2
    PLAIN = 3
    ITEM = 4
    ADD = 5
    MULTIPLY = 6
    FLOORDIV = 7
    MOD = 8
    MIN = 9
    MAX = 10
    ALIGN = 11
    EQUAL = 12
    AT_MOST = 13
    ARENA = 14
    RESULT = 15
    STORAGE = 16
    ARGUMENT = 17
    CONSTANT = 18
    VIEW = 19
    NUMBER = 20
    TUPLE = 21
    LIST = 22
    STORE = 23
    TRUTH = 24
    RELEASE = 25
    KERNEL = 26
    ACQUIRE = 27
    RETURN = 28
    JUMP = 29
    UNLESS = 30
    UNLESS_AT_MOST = 31
    LEAVE = 32
    NEXT_ARENA = 33
    MOVE = 34
    COPY = 35
    TURN = 36
    FIELDS = 37


OPERANDS: dict[Op, str] = {
    Op.ARRAY: "to argument element writable",
    Op.EXTENTS: "to argument rank",
    Op.INTEGER: "to argument",
    Op.PLAIN: "argument",
    Op.ITEM: "to argument index",
    **dict.fromkeys((Op.ADD, Op.MULTIPLY, Op.FLOORDIV, Op.MOD, Op.MIN, Op.MAX), "to from from"),
    Op.ALIGN: "to from",
    Op.EQUAL: "from from",
    Op.AT_MOST: "from from",
    Op.ARENA: "to arena from",
    Op.NEXT_ARENA: "to arena from",
    Op.MOVE: "to from",
    Op.COPY: "from from from",
    Op.TURN: "instruction",
    Op.FIELDS: "to argument count",
    Op.RESULT: "to to element from from…",
    Op.STORAGE: "to to from",
    Op.ARGUMENT: "to argument",
    Op.CONSTANT: "to constant",
    Op.VIEW: "to from element from from…",
    Op.NUMBER: "to from",
    Op.TUPLE: "to from…",
    Op.LIST: "to from…",
    Op.STORE: "argument index from",
    Op.TRUTH: "to from",
    Op.RELEASE: "",
    Op.KERNEL: "kernel from…",
    Op.ACQUIRE: "",
    Op.RETURN: "from",
    Op.JUMP: "instruction",
    Op.UNLESS: "instruction from",
    Op.UNLESS_AT_MOST: "instruction from from",
    Op.LEAVE: "",
}
"""The operands of each instruction.

``to`` and ``from`` are words of the frame that the instruction writes and reads, ``from…`` any
number of them; ``argument`` is the number of an argument, or ``~w`` for the tuple field in word
``w``; ``arena`` is the number of an arena, or of the first of two alternating ones; ``element`` is
the name of a dtype, ``kernel`` the name of a kernel, ``constant`` the index of a constant of the
executable or -1 for ``None``, ``instruction`` the number of a jump target; others are integers.
"""

Operand: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class NativeInstruction:
    """An instruction; words of the frame are numbered from 0, those of objects at the end."""

    op: Op
    operands: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """The address of the elements of constant `index`, which is known when a program is loaded."""

    index: int


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """The native code of a function, or of a segment of it.

    `constants` are words of the frame with their values, the same in all calls.  The frame has
    `num_words` words, then `num_objects` objects.  A call takes `num_arguments` and uses
    `num_arenas`.
    """

    name: str
    num_arguments: int
    constants: tuple[tuple[int, int | Address], ...]
    num_words: int
    num_objects: int
    num_arenas: int
    code: tuple[NativeInstruction, ...]

    def __str__(self) -> str:
        head = f"{self.name}: {self.num_arguments} arguments, {self.num_words} words"
        head += f", {self.num_objects} objects"
        constants = [f"  %{word} = {_constant(value)}" for word, value in self.constants]
        return "\n".join([head, *constants, *(f"  {self._text(i)}" for i in self.code)])

    def _text(self, instruction: NativeInstruction) -> str:
        kinds = operand_kinds(instruction)
        texts = map(self._operand, kinds, instruction.operands)
        return f"{instruction.op.name.lower():<8} {' '.join(texts)}".rstrip()

    def _operand(self, kind: str, operand: Operand) -> str:
        match kind:
            case "to" | "from" if isinstance(operand, int):
                beyond = operand - self.num_words
                return f"%{operand}" if beyond < 0 else f"@{beyond}"
            case "element" | "kernel":
                return str(operand)
            case "argument" if isinstance(operand, int) and operand < 0:
                return f"field %{~operand}"
            case "constant":
                return "None" if operand == -1 else f"c[{operand}]"
            case _:
                return f"{kind} {operand}"


def operand_kinds(instruction: NativeInstruction) -> Sequence[str]:
    """The kind of each operand, as in `OPERANDS`; ``from…`` is expanded to ``from``."""
    kinds = OPERANDS[instruction.op].split()
    if kinds and kinds[-1] == "from…":
        rest = len(instruction.operands) - len(kinds) + 1
        kinds[-1:] = ["from"] * rest
    return kinds


def _constant(value: int | Address) -> str:
    return str(value) if isinstance(value, int) else f"address of c[{value.index}]"


@dataclass(frozen=True, slots=True)
class KernelType:
    """The signature of a kernel: arrays of `dtypes`, the last `num_outputs` of which it writes.

    `num_integers` integers follow.
    """

    dtypes: tuple[str, ...]
    num_outputs: int
    num_integers: int


class Driver(Protocol):
    """The interface of the routine that runs native programs."""

    def kernel_type(self, kernel: Callable[..., Any]) -> KernelType | None:
        """The signature of `kernel`, if native programs may call it."""
        ...

    def load(
        self,
        program: NativeProgram,
        surroundings: "Surroundings",
        fallback: Callable[..., Any] | None,
    ) -> Callable[..., Any]:
        """A function that runs `program`.

        Calls that leave the program go to `fallback`; without one they return ``None``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment of programs: kernels, constants, and the allocator of large results."""

    kernels: Mapping[str, Callable[..., Any]]
    constants: Sequence[Any]
    allocate: Callable[[int], Any]
