"""The names in the source of the values that registers hold."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from relax_egraph.vm.bytecode import Call, Kind, successors
from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.printing import origin

Names: TypeAlias = Mapping[int, str]
"""The names of the values in registers; empty for a value without a name."""

_MEMORY = ("vm.builtin.alloc_tensor", "vm.builtin.writable")
"""The builtins that allocate the memory that calls write into."""

_KILL = "vm.builtin.kill"

_State: TypeAlias = Mapping[int, tuple[str, bool]]
"""The name of the value in each register, and whether it is allocated memory."""


def names_of(origin: str) -> tuple[str, ...]:
    """The names in an origin: ``lv3 (model.py:12:9)`` is of `lv3`, ``a, b`` of two."""
    return tuple(name for name in origin.partition(" (")[0].split(", ") if name)


def register_names(executable: Executable, function: VMFunction) -> list[Names]:
    """The names of the registers before each instruction, on every path to it.

    A register with values of different names on different paths has an empty name.  A call without
    a result writes into memory: the last of its operands that were allocated.
    """
    code = executable.instructions(function)
    states: list[_State | None] = [None] * len(code)
    states[0] = {register: (name, False) for register, name in enumerate(function.params)}
    pending = [0]
    while pending:
        at = pending.pop()
        after = states[at] or {}
        match code[at]:
            case Call() as call:
                names = names_of(origin(executable, function, at))
                after = _after(after, call, executable.callees[call.callee], names)
            case _:
                pass
        for target in successors(code[at], at):
            before = states[target]
            joined = after if before is None else _joined(before, after)
            if before is None or joined != before:
                states[target] = joined
                pending.append(target)
    return [{r: name for r, (name, _) in (known or {}).items()} for known in states]


def _after(states: _State, call: Call, callee: str, names: Sequence[str]) -> _State:
    if call.dst.kind is Kind.REGISTER:
        dst, name = call.dst.value, names[0] if len(names) == 1 else ""
        if callee == _KILL:
            return {register: value for register, value in states.items() if register != dst}
        return {**states, dst: (name, callee in _MEMORY)}
    memory = [
        arg.value
        for arg in call.args
        if arg.kind is Kind.REGISTER and states.get(arg.value, ("", False))[1]
    ]
    if not names or len(memory) < len(names):
        return states
    written = zip(memory[-len(names) :], names, strict=True)
    return {**states, **{register: (name, True) for register, name in written}}


def _joined(a: _State, b: _State) -> _State:
    return {
        register: (name if b[register][0] == name else "", memory and b[register][1])
        for register, (name, memory) in a.items()
        if register in b
    }
