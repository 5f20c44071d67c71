"""Traces the control flow of one function: branches, joins and loops.

Loops are jumps back in the code, and tail calls of a function by itself.  Both are traced until
their carried values are known (`loop_carried`), and written once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Operand, Ret
from relax_egraph.vm.executable import VMFunction
from relax_egraph.vm.native.branches import Meeting, Path, Registers, joined, joined_value
from relax_egraph.vm.native.kinds import Kinds
from relax_egraph.vm.native.loop_carried import Head, carry_step, has_heap, outlives
from relax_egraph.vm.native.numbers import Computed
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.regions import Loop, Region, common
from relax_egraph.vm.native.trace import Copy, Jump, Label
from relax_egraph.vm.native.values import (
    Carried,
    Storage,
    Tensor,
    Truth,
    Value,
)


@dataclass(slots=True)
class Body:
    """The code of a function.

    `live` are the live registers at each instruction, as bits; `returned` the tail calls; `loops`
    maps the target of jumps back to the last of these jumps.
    """

    code: Sequence[Instruction]
    live: Sequence[int]
    returned: frozenset[int]
    loops: Mapping[int, int]


class _Widened(Exception):
    """A loop carries more values than assumed: it has to be traced again."""

    def __init__(self, turns: "Turns") -> None:
        self.turns = turns


@dataclass(slots=True, eq=False)
class Turns:
    """A loop during its tracing, and the state before it.

    It begins at instruction `start` with the state `path`; the last jump back is at `end`.
    """

    loop: Loop
    start: int
    end: int
    path: Path
    head: Head
    num_steps: int
    num_loops: int
    num_returned: int
    meetings: dict[int, tuple[Meeting, int]]
    label: Label = field(default_factory=Label)


Calls: TypeAlias = Mapping[str, Turns]
"""The functions that a tail call may restart, by name."""


class Calling(Kinds, ABC):
    """The interface of the tracer for one function: operands, and calls of other code."""

    @abstractmethod
    def value(self, operand: Operand, registers: Registers) -> Value:
        """The abstract value of `operand`."""

    @abstractmethod
    def is_fatal(self, call: Call) -> bool:
        """Whether `call` always fails."""

    @abstractmethod
    def leave(self) -> None:
        """Write a step that leaves the program here."""

    @abstractmethod
    def called(self, call: Call, registers: Registers) -> tuple[VMFunction, Sequence[Value]] | None:
        """The function that `call` calls, directly or as a closure, and its arguments."""

    @abstractmethod
    def call(self, call: Call, registers: Registers, calls: Calls | None = None) -> bool:
        """Trace one call, and write its result; return whether it returns.

        A tail call may lead back to the loops of `calls`.
        """


class Activation:
    """One call of a function with `args`, during its tracing."""

    def __init__(self, tracer: Calling, body: Body, args: Sequence[Value], calls: Calls) -> None:
        self._tracer = tracer
        self._trace = tracer.trace
        self._body = body
        self._calls = calls
        self._has_heaps = any(map(has_heap, args))
        self._path: Path | None = Path(dict(enumerate(args)), self._trace.region, tracer.allocated)
        self._outside = self._trace.region.loop
        self._loops: list[Turns] = []
        self._meetings: dict[int, Meeting] = {}
        self._end, self._returned = Meeting(), list[Value]()

    def result(self, recursive: str | None) -> Value | None:
        """The result of the function, or ``None`` if it never returns.

        `recursive` is its name if it calls itself by tail calls.
        """
        code, at = self._body.code, 0
        if recursive is not None and self._path is not None:
            self._calls = {**self._calls, recursive: self._open(self._path, 0, len(code))}
        while at < len(code):
            try:
                self._arrive(at)
                if self._path is not None:
                    self._path = self._instruction(at, code[at], self._path)
                at += 1
            except _Widened as widened:
                if widened.turns not in self._loops:
                    raise
                at = self._again(widened.turns)
        return self._leave()

    def _instruction(self, at: int, instruction: Instruction, path: Path) -> Path | None:
        """Trace one instruction; the state after it, if control continues with the next one."""
        tracer = self._tracer
        tracer.allocated = path.allocated
        match instruction:
            case Call():
                return self._call(at, instruction, path)
            case Goto(offset):
                if offset > 0:
                    self._jump(at + offset, path)
                else:
                    self._turn(self._turns(at + offset), path)
                return None
            case If(cond, offset):
                truth = tracer.value(cond, path.registers)
                if not isinstance(truth, Truth) or self._has_heaps:
                    raise Refused("a branch on a condition from outside the program")
                return self._branch(at + offset, path, truth, is_back=offset <= 0)
            case Ret(value):
                self._returned.append(tracer.value(value, path.registers))
                self._end.paths.append(path)
                self._trace.add(Jump(self._end.label))
                return None

    def _call(self, at: int, call: Call, path: Path) -> Path | None:
        tracer = self._tracer
        if tracer.is_fatal(call):
            tracer.leave()
            return None
        is_returned = at in self._body.returned
        if is_returned and self._calls:
            called = tracer.called(call, path.registers)
            turns = self._calls.get(called[0].name) if called else None
            if called and turns:
                self._turn(turns, Path(dict(enumerate(called[1])), path.region, path.allocated))
                return None
        goes_on = tracer.call(call, path.registers, self._calls if is_returned else {})
        path.allocated, path.region = tracer.allocated, self._trace.region
        return path if goes_on else None

    # --- branches ---------------------------------------------------------------------

    def _arrive(self, at: int) -> None:
        """Close the loops that end before instruction `at`, join the jumps to it, open a loop."""
        while self._loops and at > self._loops[-1].end:
            self._loops.pop().loop.last = len(self._trace.steps)
        if at in self._meetings:
            self._path = self._met(self._meetings.pop(at), self._path, self._body.live[at])
        if self._path is not None:
            self._go_on(self._path)
            end = self._body.loops.get(at)
            if end is not None and all((t.start, t.end) != (at, end) for t in self._loops):
                self._open(self._path, at, end)

    def _met(self, meeting: Meeting, path: Path | None, live: int) -> Path:
        """Continue at a join of jumps, and of `path` if the previous instruction continues here."""
        paths = meeting.paths if path is None else [*meeting.paths, path]
        if not all(p.region.is_in(self._innermost()) for p in paths):
            raise Refused("a loop that is entered in its middle")
        self._trace.add(meeting.label)
        return joined(paths, {r for r in range(live.bit_length()) if live >> r & 1})

    def _go_on(self, path: Path) -> None:
        """Enter the region of `path`, or a new region after a loop."""
        if path.region.loop is not self._innermost():
            path.region = Region(path.region, self._innermost())
        self._trace.enter(path.region)

    def _jump(self, target: int, path: Path, unless: Truth | None = None) -> None:
        meeting = self._meetings.setdefault(target, Meeting())
        meeting.paths.append(path)
        self._trace.add(Jump(meeting.label, unless))

    def _branch(self, target: int, path: Path, truth: Truth, *, is_back: bool) -> Path:
        """Jump unless `truth` holds; in a loop, each way gets its own region."""
        other, loop = path.copy(), self._innermost()
        if loop is not None:
            other.region, path.region = Region(path.region, loop), Region(path.region, loop)
        if is_back:
            back, onwards = Label(), Label()
            self._trace.add(Jump(back, truth))
            self._trace.add(Jump(onwards))
            self._trace.add(back)
            self._trace.enter(other.region)
            self._turn(self._turns(target), other)
            self._trace.add(onwards)
        else:
            self._jump(target, other, truth)
        self._trace.enter(path.region)
        return path

    def _innermost(self) -> Loop | None:
        return self._loops[-1].loop if self._loops else self._outside

    # --- loops ------------------------------------------------------------------------

    def _open(self, path: Path, start: int, end: int) -> Turns:
        """Open a loop of the instructions ``start … end``."""
        if self._has_heaps:
            raise Refused("a loop with a heap from outside")
        if self._loops and end > self._loops[-1].end:
            raise Refused("loops that overlap")
        loop, before, live = Loop(self._innermost()), path.copy(), self._body.live[start]
        initial = {r: v for r, v in before.registers.items() if live >> r & 1}
        meetings = {at: (m, len(m.paths)) for at, m in self._meetings.items()}
        turns = Turns(
            *(loop, start, end, before, Head(self._tracer, loop, initial)),
            *(len(self._trace.steps), len(self._trace.loops), len(self._returned), meetings),
        )
        self._loops.append(turns)
        self._begin(turns)
        return turns

    def _again(self, turns: Turns) -> int:
        """Discard the trace since the start of a loop, and restart it; returns its instruction."""
        del self._loops[self._loops.index(turns) + 1 :]
        del self._trace.steps[turns.num_steps :]
        del self._trace.loops[turns.num_loops :]
        del self._returned[turns.num_returned :]
        del self._end.paths[turns.num_returned :]
        self._meetings = {at: m for at, (m, _) in turns.meetings.items()}
        for meeting, count in turns.meetings.values():
            del meeting.paths[count:]
        self._begin(turns)
        return turns.start

    def _begin(self, turns: Turns) -> None:
        """Write the start of a loop, and continue with its carried values."""
        trace, before, head = self._trace, turns.path, turns.head
        trace.enter(before.region)
        trace.loops.append(turns.loop)
        region = Region(before.region, turns.loop)
        leaves = head.leaves(head.initial)
        region.carried.update(to for to, _ in leaves if isinstance(to, Computed))
        for to, _ in leaves:
            if isinstance(to, Carried):
                to.incoming.clear()
                to.origins.clear()
        trace.add(carry_step(leaves, {}))
        turns.loop.first = len(trace.steps)
        trace.add(turns.label)
        trace.enter(region)
        self._path = Path(head.values, region, before.allocated).copy()

    def _turns(self, start: int) -> Turns:
        """The loop of a jump back to `start`."""
        for turns in self._loops:
            if (turns.start, turns.end) == (start, self._body.loops[start]):
                return turns
        raise Refused("a loop that is entered in its middle")

    def _turn(self, turns: Turns, path: Path) -> None:
        """Start the next turn with the registers of `path`."""
        if turns.head.widen(path.registers):
            raise _Widened(turns)
        leaves = turns.head.leaves(path.registers)
        tensors = [t for _, t in leaves if isinstance(t, Tensor)]
        overwritten = [t for t in tensors if not outlives(t, turns.loop)]
        if overwritten:
            self._trace.enter(Region(path.region, turns.loop))
        copies = {tensor: self._copied(tensor) for tensor in overwritten}
        self._trace.add(carry_step(leaves, copies))
        self._trace.add(Jump(turns.label, is_back=True))

    def _copied(self, tensor: Tensor) -> Tensor:
        """A copy of `tensor`, whose memory the next turn overwrites."""
        assert tensor.shape is not None
        size = self._tracer.size(tensor.shape, tensor.dtype)
        copy = Tensor(self._tracer.storage(size), tensor.dtype, tensor.shape)
        self._trace.add(Copy(copy, tensor, size))
        return copy

    def _leave(self) -> Value | None:
        """The end of the function: the join of all its returns."""
        trace = self._trace
        while self._loops:
            self._loops.pop().loop.last = len(trace.steps)
        if not self._returned:
            return None
        if trace.steps[-1][1] == Jump(self._end.label):
            trace.steps.pop()
        trace.add(self._end.label)
        paths = self._end.paths
        path = Path({}, common(p.region for p in paths))
        self._go_on(path)
        self._tracer.allocated = set[Storage]().union(*(p.allocated for p in paths))
        return joined_value(self._returned, paths)
