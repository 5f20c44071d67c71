"""What the registers of a function hold, as the source calls it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from relax_egraph.vm.bytecode import Call, Kind, successors
from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.printing import origin

Names: TypeAlias = Mapping[int, str]
"""Registers that hold a value, and its name, or no text where it has none."""

_MEMORY = ("vm.builtin.alloc_tensor", "vm.builtin.writable")
"""What makes the memory that calls write into."""

_KILL = "vm.builtin.kill"

_Held: TypeAlias = Mapping[int, tuple[str, bool]]
"""The name of what each register holds, and whether it is memory that was allocated."""


def names_of(origin: str) -> tuple[str, ...]:
    """The names in an origin: ``lv3 (model.py:12:9)`` is of `lv3`, ``a, b`` of two."""
    return tuple(name for name in origin.partition(" (")[0].split(", ") if name)


def held_names(executable: Executable, function: VMFunction) -> list[Names]:
    """What registers hold before each instruction, on whichever path it is reached.

    A register that is written on every path, with values of different names, has none.  A call
    without a result writes into memory: into the last of its operands that were allocated.
    """
    code = executable.instructions(function)
    held: list[_Held | None] = [None] * len(code)
    held[0] = {register: (name, False) for register, name in enumerate(function.params)}
    pending = [0]
    while pending:
        at = pending.pop()
        after = held[at] or {}
        match code[at]:
            case Call() as call:
                names = names_of(origin(executable, function, at))
                after = _after(after, call, executable.callees[call.callee], names)
            case _:
                pass
        for target in successors(code[at], at):
            before = held[target]
            met = after if before is None else _met(before, after)
            if before is None or met != before:
                held[target] = met
                pending.append(target)
    return [{r: name for r, (name, _) in (known or {}).items()} for known in held]


def _after(held: _Held, call: Call, callee: str, names: Sequence[str]) -> _Held:
    if call.dst.kind is Kind.REGISTER:
        dst, name = call.dst.value, names[0] if len(names) == 1 else ""
        if callee == _KILL:
            return {register: value for register, value in held.items() if register != dst}
        return {**held, dst: (name, callee in _MEMORY)}
    memory = [
        arg.value
        for arg in call.args
        if arg.kind is Kind.REGISTER and held.get(arg.value, ("", False))[1]
    ]
    if not names or len(memory) < len(names):
        return held
    written = zip(memory[-len(names) :], names, strict=True)
    return {**held, **{register: (name, True) for register, name in written}}


def _met(a: _Held, b: _Held) -> _Held:
    return {
        register: (name if b[register][0] == name else "", memory and b[register][1])
        for register, (name, memory) in a.items()
        if register in b
    }
