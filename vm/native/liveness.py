"""Which registers are still needed, at each instruction of a function."""

from collections.abc import Sequence

from relax_egraph.vm.bytecode import Call, Instruction, Kind, Operand, operands_read, successors


def live_registers(code: Sequence[Instruction]) -> list[int]:
    """The registers that are read from each instruction on before they are written, as bits."""
    live = [0] * len(code)
    before: list[list[int]] = [[] for _ in code]
    for at, instruction in enumerate(code):
        for target in successors(instruction, at):
            before[target].append(at)
    pending = list(range(len(code)))
    while pending:
        at = pending.pop()
        instruction = code[at]
        found = 0
        for target in successors(instruction, at):
            found |= live[target]
        if isinstance(instruction, Call):
            found &= ~_bits((instruction.dst,))
        found |= _bits(operands_read(instruction))
        if found != live[at]:
            live[at] = found
            pending += before[at]
    return live


def _bits(operands: Sequence[Operand]) -> int:
    bits = 0
    for operand in operands:
        if operand.kind is Kind.REGISTER:
            bits |= 1 << operand.value
    return bits
