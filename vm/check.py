"""The verifier of bytecode, which the builder and the loader run."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.vm.bytecode import (
    MAX_REGISTERS,
    Call,
    Instruction,
    Kind,
    Operand,
    operands_read,
    successors,
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The sizes of the tables that operands index."""

    registers: int
    constants: int
    callees: int


def find_fault(code: Sequence[Instruction], num_inputs: int, bounds: Bounds) -> str | None:
    """The first violation in the code of one function, or ``None``.

    The rules: every operand is within `bounds`; every jump leads to an instruction of the
    function, and control never runs off its end; a register is written before it is read, on every
    path.
    """
    if not num_inputs <= bounds.registers <= MAX_REGISTERS:
        return f"{bounds.registers} registers, needs {num_inputs} to {MAX_REGISTERS}"
    for at, instruction in enumerate(code):
        if fault := _operand_fault(instruction, bounds):
            return f"instruction {at}: {fault}"
        for target in successors(instruction, at):
            if not 0 <= target < len(code):
                return f"instruction {at}: goes on at {target}, outside of 0..{len(code) - 1}"
    if not code:
        return "it has no instructions"
    return _undefined_register(code, num_inputs)


def registers_read(code: Sequence[Instruction]) -> set[int]:
    """The registers that some instruction reads."""
    return {
        operand.value
        for instruction in code
        for operand in operands_read(instruction)
        if operand.kind is Kind.REGISTER
    }


def _operand_fault(instruction: Instruction, bounds: Bounds) -> str | None:
    limits = {
        Kind.REGISTER: (bounds.registers, "registers"),
        Kind.CONSTANT: (bounds.constants, "constants"),
        Kind.FUNCTION: (bounds.callees, "callees"),
    }
    operands = list(operands_read(instruction))
    if isinstance(instruction, Call):
        if instruction.dst.kind not in (Kind.REGISTER, Kind.VOID):
            return f"the result goes to {instruction.dst}, needs a register or void"
        operands += [instruction.dst, Operand(Kind.FUNCTION, instruction.callee)]
    for operand in operands:
        count, noun = limits.get(operand.kind, (0, ""))
        if noun and not 0 <= operand.value < count:
            return f"{operand} of {count} {noun}"
    return None


def _undefined_register(code: Sequence[Instruction], num_inputs: int) -> str | None:
    """A forward dataflow analysis over sets of written registers, each set the bits of an int."""
    written: list[int | None] = [None] * len(code)
    written[0] = (1 << num_inputs) - 1
    pending = [0]
    while pending:
        at = pending.pop()
        after = known = written[at] or 0
        instruction = code[at]
        for operand in operands_read(instruction):
            if operand.kind is Kind.REGISTER and not known >> operand.value & 1:
                return f"instruction {at}: {operand} is read before it is written"
        if isinstance(instruction, Call) and instruction.dst.kind is Kind.REGISTER:
            after |= 1 << instruction.dst.value
        for target in successors(instruction, at):
            before = written[target]
            met = after if before is None else before & after
            if met != before:
                written[target] = met
                pending.append(target)
    return None
