"""Renumbers the registers of a finished function in order of first mention."""

from collections.abc import Iterator, Mapping, Sequence

from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Kind, Operand, Ret


def renumbering(code: Sequence[Instruction], inputs: int) -> dict[int, int]:
    """The new number of each register; the inputs keep theirs."""
    numbers = {i: i for i in range(inputs)}
    for instruction in code:
        for register in _registers(instruction):
            numbers.setdefault(register, len(numbers))
    return numbers


def renumber(instruction: Instruction, numbers: Mapping[int, int]) -> Instruction:
    """`instruction` with its registers renumbered."""

    def new(operand: Operand) -> Operand:
        if operand.kind is not Kind.REGISTER:
            return operand
        return Operand(Kind.REGISTER, numbers[operand.value])

    match instruction:
        case Call(callee, args, dst):
            return Call(callee, tuple(map(new, args)), new(dst))
        case Ret(value):
            return Ret(new(value))
        case If(cond, false_offset):
            return If(new(cond), false_offset)
        case Goto():
            return instruction


def _registers(instruction: Instruction) -> Iterator[int]:
    match instruction:
        case Call(args=args, dst=dst):
            operands = (*args, dst)
        case Ret(value):
            operands = (value,)
        case If(cond=cond):
            operands = (cond,)
        case Goto():
            operands = ()
    yield from (o.value for o in operands if o.kind is Kind.REGISTER)
