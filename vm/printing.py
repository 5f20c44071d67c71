"""Executables as text: a listing, and the program that builds them again."""

from collections.abc import Iterator

import numpy as np

from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Kind, Operand, Ret
from relax_egraph.vm.executable import ConstantValue, Executable, VMFunction


def as_text(executable: Executable) -> str:
    """One line for each instruction; a jump shows the number of the instruction it leads to."""
    return "\n\n".join("\n".join(_listing(executable, f)) for f in executable.functions)


def instruction_text(executable: Executable, instruction: Instruction, at: int) -> str:
    """One line: ``call  add  in: %0, %1  dst: %2``."""
    match instruction:
        case Call(callee, args, dst):
            inputs = ", ".join(_operand(executable, a) for a in args)
            return f"call  {executable.callees[callee]}  in: {inputs}  dst: {dst}"
        case Ret(value):
            return f"ret   {_operand(executable, value)}"
        case If(cond, false_offset):
            return f"if    {cond}  else: {at + false_offset}"
        case Goto(offset):
            return f"goto  {at + offset}"


def as_python(executable: Executable) -> str:
    """See `Executable.as_python`."""
    lines = ["ib = ExecBuilder(constants)"]
    for function in executable.functions:
        lines += _program(executable, function)
    return "\n".join([*lines, "executable = ib.get()", ""])


def _listing(executable: Executable, function: VMFunction) -> Iterator[str]:
    params = [
        f"{name}: {info}" if info else name
        for name, info in zip(function.params, function.param_info, strict=True)
    ]
    private = "private " if function.private else ""
    yield f"{private}@{function.name}({', '.join(params)}):"
    for at, instruction in enumerate(executable.instructions(function)):
        yield f"  {at:>3}  {instruction_text(executable, instruction, at)}"


def _operand(executable: Executable, operand: Operand) -> str:
    match operand.kind:
        case Kind.CONSTANT:
            return f"{operand}={_constant(executable.constants[operand.value])}"
        case Kind.FUNCTION:
            return f"@{executable.callees[operand.value]}"
        case _:
            return str(operand)


def _constant(constant: ConstantValue) -> str:
    match constant:
        case np.ndarray():
            return f"{constant.dtype.name}[{', '.join(map(str, constant.shape))}]"
        case np.dtype():
            return constant.name
        case _:
            return repr(constant)


def _program(executable: Executable, function: VMFunction) -> Iterator[str]:
    private = ", private=True" if function.private else ""
    yield (
        f"with ib.function({function.name!r}, {len(function.params)}, {function.params!r}, "
        f"{function.param_info!r}{private}, allow_unused=True):"
    )
    for instruction in executable.instructions(function):
        match instruction:
            case Call(callee, args, dst):
                name = executable.callees[callee]
                inputs = ", ".join(_source(executable, a) for a in args)
                target = "" if dst.kind is Kind.VOID else f", dst={_source(executable, dst)}"
                yield f"    ib.emit_call({name!r}, [{inputs}]{target})"
            case Ret(value):
                yield f"    ib.emit_ret({_source(executable, value)})"
            case If(cond, false_offset):
                yield f"    ib.emit_if({_source(executable, cond)}, {false_offset})"
            case Goto(offset):
                yield f"    ib.emit_goto({offset})"


def _source(executable: Executable, operand: Operand) -> str:
    match operand.kind:
        case Kind.REGISTER:
            return f"ib.r({operand.value})"
        case Kind.IMMEDIATE:
            return f"ib.imm({operand.value})"
        case Kind.CONSTANT:
            return f"ib.c({operand.value})"
        case Kind.FUNCTION:
            return f"ib.f({executable.callees[operand.value]!r})"
        case Kind.VM_STATE:
            return "ib.vm_state()"
        case Kind.VOID:
            return "ib.void_arg()"
