"""Selects the instructions of a function that native programs replace."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from relax_egraph.vm.bytecode import (
    Call,
    Instruction,
    Kind,
    operands_read,
    successors,
)
from relax_egraph.vm.executable import VMFunction
from relax_egraph.vm.native.assemble import assemble
from relax_egraph.vm.native.branches import Registers
from relax_egraph.vm.native.program import NativeProgram
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.tracer import Callees, Tracer
from relax_egraph.vm.native.values import Argument, Fields

LEAST = 3
"""The fewest instructions that are worth a call of the driver."""


@dataclass(frozen=True, slots=True)
class NativeSegment:
    """Instructions ``start … end - 1``: `program` and its input and output registers."""

    start: int
    end: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    program: NativeProgram


def native_function(callees: Callees, function: VMFunction, max_depth: int) -> NativeProgram:
    """The native program of `function`; raises `Refused`."""
    tracer = Tracer(callees, len(function.params), max_depth)
    args = [Argument(i) for i in range(len(function.params))]
    try:
        result = tracer.function(function, args)
        if result is None:
            raise Refused("a function that does not return")
        tracer.trace.results.append(result)
        return assemble(function.name, tracer.trace, len(args), from_outside=True)
    except RecursionError:
        raise Refused("nested too deeply") from None


def native_segments(
    callees: Callees, function: VMFunction, max_depth: int
) -> Iterator[NativeSegment]:
    """The longest runs of instructions with a native form that are worth it."""
    body = callees.body(function)
    code, live = body.code, body.live
    for first, last in _blocks(code):
        start = first
        while last - start >= LEAST:
            end = _reach(callees, code, start, last, max_depth)
            if end - start >= LEAST:
                for stop in range(end, max(start + LEAST, end - 2) - 1, -1):
                    with suppress(Refused, RecursionError):
                        yield _segment(
                            callees, function.name, code, start, stop, live[stop], max_depth
                        )
                        break
            start = max(end, start + 1)


def _segment(
    callees: Callees,
    name: str,
    code: Sequence[Instruction],
    start: int,
    end: int,
    live: int,
    max_depth: int,
) -> NativeSegment:
    inputs = _inputs(code[start:end])
    tracer = Tracer(callees, len(inputs), max_depth)
    registers: Registers = {register: Argument(i) for i, register in enumerate(inputs)}
    calls = [c for c in code[start:end] if isinstance(c, Call)]
    for call in calls:
        tracer.call(call, registers)
    written = {c.dst.value for c in calls if c.dst.kind is Kind.REGISTER}
    outputs = tuple(r for r in sorted(written) if live >> r & 1)
    tracer.trace.results.append(Fields(tuple(tracer.known(registers[r]) for r in outputs)))
    title = f"{name}[{start}:{end}]"
    program = assemble(title, tracer.trace, len(inputs), from_outside=False)
    return NativeSegment(start, end, inputs, outputs, program)


def _reach(
    callees: Callees, code: Sequence[Instruction], start: int, last: int, max_depth: int
) -> int:
    """The end of the longest run of instructions from `start` with a native form.

    A loop may leave the segment in the middle, and then the interpreter repeats the segment.  So it
    must not write its inputs; writes in place are not always visible here, because an input
    register may hold the result of an earlier ``writable``.
    """
    inputs = _inputs(code[start:last])
    tracer = Tracer(callees, len(inputs), max_depth)
    registers: Registers = {register: Argument(i) for i, register in enumerate(inputs)}
    for at in range(start, last):
        instruction = code[at]
        assert isinstance(instruction, Call)
        try:
            if not tracer.call(instruction, registers):
                return at
            if tracer.trace.loops and callees.stores_in_place:
                return at
        except (Refused, RecursionError):
            return at
    return last


def _inputs(code: Sequence[Instruction]) -> tuple[int, ...]:
    """The registers that straight-line code reads before it writes them."""
    reads: dict[int, None] = {}
    written: set[int] = set()
    for instruction in code:
        read = [o.value for o in operands_read(instruction) if o.kind is Kind.REGISTER]
        reads.update(dict.fromkeys(r for r in read if r not in written))
        if isinstance(instruction, Call) and instruction.dst.kind is Kind.REGISTER:
            written.add(instruction.dst.value)
    return tuple(reads)


def _blocks(code: Sequence[Instruction]) -> Iterator[tuple[int, int]]:
    """Basic blocks of calls."""
    targets = {
        target
        for at, instruction in enumerate(code)
        if not isinstance(instruction, Call)
        for target in successors(instruction, at)
    }
    start = 0
    for at, instruction in enumerate(code):
        if at in targets and at > start:
            yield start, at
            start = at
        if not isinstance(instruction, Call):
            if at > start:
                yield start, at
            start = at + 1
