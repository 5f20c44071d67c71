"""The instructions, and their encoding in an array of ``int64`` words.

    call dst callee args…     dst = callee(args…); dst may be void
    ret  value                leave the function
    if   cond false_offset    cond true: next instruction; else jump
    goto offset               jump

Each instruction is an opcode word and its operands.  Offsets count instructions and are
relative to the jump itself.  An operand is one word: its kind in the low three bits, its
value in the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from relax_egraph.errors import ExecutableError


class Opcode(IntEnum):
    """The first word of an instruction."""

    CALL = 1
    RET = 2
    IF = 3
    GOTO = 4


class Kind(IntEnum):
    """The kind of an operand: what its value indexes."""

    REGISTER = 0
    IMMEDIATE = 1
    CONSTANT = 2
    FUNCTION = 3
    VM_STATE = 4
    VOID = 5


_KINDS = tuple(Kind)  # a third of the time of Kind(k)

IMMEDIATE_MIN, IMMEDIATE_MAX = -(1 << 60), (1 << 60) - 1
"""The immediates that fit the word of an operand; other integers are constants."""

MAX_REGISTERS = 1 << 20
"""The most registers of a function: a damaged file cannot request a huge frame."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A register, an immediate integer, or an index into the constants or callees."""

    kind: Kind
    value: int = 0

    def __str__(self) -> str:
        match self.kind:
            case Kind.REGISTER:
                return f"%{self.value}"
            case Kind.IMMEDIATE:
                return f"i{self.value}"
            case Kind.CONSTANT:
                return f"c[{self.value}]"
            case Kind.FUNCTION:
                return f"f[{self.value}]"
            case Kind.VM_STATE:
                return "vm"
            case Kind.VOID:
                return "void"


VOID = Operand(Kind.VOID)
VM_STATE = Operand(Kind.VM_STATE)


@dataclass(frozen=True, slots=True)
class Call:
    """``dst = callee(args…)``; `callee` is an index into the names of callees."""

    callee: int
    args: tuple[Operand, ...]
    dst: Operand


@dataclass(frozen=True, slots=True)
class Ret:
    """Leave the function with `value`."""

    value: Operand


@dataclass(frozen=True, slots=True)
class If:
    """Continue if `cond` is true, else jump by `false_offset`."""

    cond: Operand
    false_offset: int


@dataclass(frozen=True, slots=True)
class Goto:
    """Jump by `offset`."""

    offset: int


Instruction: TypeAlias = Call | Ret | If | Goto


def encode(instruction: Instruction) -> list[int]:
    """The words of `instruction`: ``decode(encode(i), 0) == (i, len(encode(i)))``."""
    match instruction:
        case Call(callee, args, dst):
            return [Opcode.CALL, _word(dst), callee, len(args), *map(_word, args)]
        case Ret(value):
            return [Opcode.RET, _word(value)]
        case If(cond, false_offset):
            return [Opcode.IF, _word(cond), false_offset]
        case Goto(offset):
            return [Opcode.GOTO, offset]


def decode(words: Sequence[int], start: int) -> tuple[Instruction, int]:
    """The instruction at `start`, and the start of the next; raises `ExecutableError`."""
    try:
        match words[start]:
            case Opcode.CALL:
                count = words[start + 3]
                if not 0 <= count <= len(words) - start - 4:
                    raise ExecutableError(
                        f"section code: word {start}: a call of {count} arguments"
                    )
                end = start + 4 + count
                args = tuple(_operand(w) for w in words[start + 4 : end])
                return Call(words[start + 2], args, _operand(words[start + 1])), end
            case Opcode.RET:
                return Ret(_operand(words[start + 1])), start + 2
            case Opcode.IF:
                return If(_operand(words[start + 1]), words[start + 2]), start + 3
            case Opcode.GOTO:
                return Goto(words[start + 1]), start + 2
            case other:
                raise ExecutableError(
                    f"section code: word {start}: no instruction has the opcode {other}"
                )
    except IndexError:
        raise ExecutableError(f"section code: word {start}: the instruction is cut off") from None


def operands_read(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands that `instruction` reads."""
    match instruction:
        case Call(args=args):
            return args
        case Ret(value):
            return (value,)
        case If(cond=cond):
            return (cond,)
        case Goto():
            return ()


def successors(instruction: Instruction, at: int) -> tuple[int, ...]:
    """The instructions that may follow `instruction`, which has number `at`."""
    match instruction:
        case Call():
            return (at + 1,)
        case Ret():
            return ()
        case If(false_offset=offset):
            return (at + 1, at + offset)
        case Goto(offset):
            return (at + offset,)


def _word(operand: Operand) -> int:
    return operand.value << 3 | operand.kind


def _operand(word: int) -> Operand:
    if word & 7 > Kind.VOID:
        raise ExecutableError(f"section code: no operand has the kind {word & 7}")
    return Operand(_KINDS[word & 7], word >> 3)
