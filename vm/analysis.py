"""Static analyses of bytecode: liveness of registers, and tail calls.

`Executable.as_text` shows both with ``analyses=True``.
"""

from collections.abc import Sequence

from relax_egraph.vm.bytecode import (
    Call,
    Goto,
    Instruction,
    Kind,
    Operand,
    Ret,
    operands_read,
    successors,
)
from relax_egraph.vm.executable import Executable

COPY, INVOKE_CLOSURE = "vm.builtin.copy", "vm.builtin.invoke_closure"


# --- liveness -------------------------------------------------------------------------


def live_registers(code: Sequence[Instruction]) -> list[int]:
    """The registers that are live before each instruction, as bits."""
    live = [0] * len(code)
    before: list[list[int]] = [[] for _ in code]
    for at, instruction in enumerate(code):
        for target in successors(instruction, at):
            before[target].append(at)
    pending = list(range(len(code)))
    while pending:
        at = pending.pop()
        instruction = code[at]
        live_after = _live_after(code, live, at) & ~_written(instruction)
        live_after |= _bits(operands_read(instruction))
        if live_after != live[at]:
            live[at] = live_after
            pending += before[at]
    return live


def dying_registers(code: Sequence[Instruction]) -> list[tuple[int, ...]]:
    """For each instruction, the registers whose last use it is.

    They are registers that it reads or writes: a value that only one branch needs dies at the
    jump to the other.
    """
    live = live_registers(code)
    dying: list[tuple[int, ...]] = []
    for at, instruction in enumerate(code):
        after, written = _live_after(code, live, at), _written(instruction)
        ended = _bits(operands_read(instruction)) & ~(after & ~written) | written & ~after
        dying.append(tuple(r for r in range(ended.bit_length()) if ended >> r & 1))
    return dying


def _live_after(code: Sequence[Instruction], live: Sequence[int], at: int) -> int:
    live_after = 0
    for target in successors(code[at], at):
        live_after |= live[target]
    return live_after


def _written(instruction: Instruction) -> int:
    return _bits((instruction.dst,)) if isinstance(instruction, Call) else 0


def _bits(operands: Sequence[Operand]) -> int:
    bits = 0
    for operand in operands:
        if operand.kind is Kind.REGISTER:
            bits |= 1 << operand.value
    return bits


# --- tail calls -----------------------------------------------------------------------


def tail_calls(executable: Executable, code: Sequence[Instruction]) -> frozenset[int]:
    """The calls of functions and closures whose result the function returns.

    Between such a call and the return there are only copies and jumps: the callee can replace its
    caller.
    """
    followed = {f.name for f in executable.functions} | {INVOKE_CLOSURE}
    returned = _returned(executable, code)
    return frozenset(
        at
        for at, instruction in enumerate(code)
        if isinstance(instruction, Call)
        and executable.callees[instruction.callee] in followed
        and instruction.dst.kind is Kind.REGISTER
        and returned[at + 1] == instruction.dst
    )


def _returned(executable: Executable, code: Sequence[Instruction]) -> dict[int, Operand | None]:
    """The operand returned after each instruction, if only copies and jumps precede the return."""
    known: dict[int, Operand | None] = {}
    for start in range(len(code)):
        path: list[int] = []
        at = start
        while at not in known:
            known[at] = None  # a cycle of jumps
            path.append(at)
            match code[at]:
                case Ret(value):
                    known[at] = value
                case Goto(offset):
                    at += offset
                case Call() as call if _is_copy(executable, call):
                    at += 1
                case _:
                    pass
        result = known[at]
        for step in reversed(path):
            copy = code[step]
            if isinstance(copy, Call) and _is_copy(executable, copy):
                result = copy.args[0] if result == copy.dst else None
            known[step] = result
    return known


def _is_copy(executable: Executable, call: Call) -> bool:
    return executable.callees[call.callee] == COPY and len(call.args) == 1
