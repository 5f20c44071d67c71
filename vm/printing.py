"""Executables as text: a listing, and a Python program that rebuilds them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from relax_egraph.vm.analysis import dying_registers, tail_calls
from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Kind, Operand, Ret
from relax_egraph.vm.executable import ConstantValue, Executable, VMFunction


def as_text(executable: Executable, *, analyses: bool = False) -> str:
    """See `Executable.as_text`."""
    listings = (_listing(executable, f, analyses=analyses) for f in executable.functions)
    return "\n\n".join("\n".join(listing) for listing in listings)


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


def with_comment(line: str, comment: str) -> str:
    """`line`, with the comment if there is one."""
    return f"{line}  # {comment}" if comment else line


def instruction_at(executable: Executable, function: VMFunction, at: int) -> Instruction:
    """Instruction `at` of `function`."""
    number = function.start + at
    return executable.instructions(replace(function, start=number, end=number + 1))[0]


def origin(executable: Executable, function: VMFunction, at: int) -> str:
    """The name in the source of the value that instruction `at` computes, or empty."""
    return executable.origins[function.start + at] if executable.origins else ""


def as_python(executable: Executable) -> str:
    """See `Executable.as_python`."""
    lines = ["ib = ExecBuilder(constants)"]
    for function in executable.functions:
        lines += _program(executable, function)
    return "\n".join([*lines, "executable = ib.get()", ""])


def _listing(executable: Executable, function: VMFunction, *, analyses: bool) -> Iterator[str]:
    params = [
        f"{name}: {info}" if info else name
        for name, info in zip(function.params, function.param_info, strict=True)
    ]
    private = "private " if function.private else ""
    yield f"{private}@{function.name}({', '.join(params)}):"
    code = executable.instructions(function)
    annotations = list(_annotations(executable, code)) if analyses else [""] * len(code)
    for at, instruction in enumerate(code):
        text = instruction_text(executable, instruction, at)
        comments = filter(None, (origin(executable, function, at), annotations[at]))
        yield f"  {at:>3}  {with_comment(text, '; '.join(comments))}"


def _annotations(executable: Executable, code: Sequence[Instruction]) -> Iterator[str]:
    """The results of the analyses for each instruction."""
    tails = tail_calls(executable, code)
    for at, dying in enumerate(dying_registers(code)):
        ends = f"last of {', '.join(f'%{r}' for r in dying)}" if dying else ""
        yield "; ".join(filter(None, ("tail call" if at in tails else "", ends)))


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
    for at, instruction in enumerate(executable.instructions(function)):
        name = origin(executable, function, at)
        known = f", origin={name!r}" if name else ""
        match instruction:
            case Call(callee, args, dst):
                inputs = ", ".join(_source(executable, a) for a in args)
                target = "" if dst.kind is Kind.VOID else f", dst={_source(executable, dst)}"
                called = executable.callees[callee]
                yield f"    ib.emit_call({called!r}, [{inputs}]{target}{known})"
            case Ret(value):
                yield f"    ib.emit_ret({_source(executable, value)}{known})"
            case If(cond, false_offset):
                yield f"    ib.emit_if({_source(executable, cond)}, {false_offset}{known})"
            case Goto(offset):
                yield f"    ib.emit_goto({offset}{known})"


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
