"""Follows the code of one function: instruction by instruction, past branches and round loops.

Loops are jumps back in the code, and calls of a function by itself whose result is what it
returns; both are followed until what they carry is known (`carrying`), and written once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.vm.bytecode import Call, Goto, If, Instruction, Operand, Ret
from relax_egraph.vm.executable import VMFunction
from relax_egraph.vm.native.branches import Meeting, Path, Registers, joined, joined_value
from relax_egraph.vm.native.carrying import Head, carry_step, has_heap, outlives
from relax_egraph.vm.native.kinds import Kinds
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

    `live` are the registers that are live at each instruction, as bits; `returned` the calls whose
    result the function returns; `loops` leads from where jumps back lead to, to the last of them.
    """

    code: Sequence[Instruction]
    live: Sequence[int]
    returned: frozenset[int]
    loops: Mapping[int, int]


class _Widened(Exception):
    """A loop carries more than was thought: it has to be followed again."""

    def __init__(self, turns: "Turns") -> None:
        self.turns = turns


@dataclass(slots=True, eq=False)
class Turns:
    """A loop that is being followed, and all that there was before it.

    It begins at instruction `start`, where `path` was; the last jump back is at `end`.
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
"""The functions that are begun anew by a call whose result is what they return, by name."""


class Calling(Kinds, ABC):
    """What the code of a function asks of its tracer: operands, and the calls of other code."""

    @abstractmethod
    def value(self, operand: Operand, registers: Registers) -> Value:
        """What `operand` is."""

    @abstractmethod
    def is_fatal(self, call: Call) -> bool:
        """Whether `call` does nothing but fail."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the program where this is."""

    @abstractmethod
    def called(self, call: Call, registers: Registers) -> tuple[VMFunction, Sequence[Value]] | None:
        """The function that `call` calls, maybe as a closure, and what it gives to it."""

    @abstractmethod
    def call(self, call: Call, registers: Registers, calls: Calls | None = None) -> bool:
        """Follow one call, and write its result; whether it returns.

        A call in the place of the caller may lead back to the loops of `calls`.
        """


class Activation:
    """One call of a function while it is followed, with `args`."""

    def __init__(self, tracer: Calling, body: Body, args: Sequence[Value], calls: Calls) -> None:
        self._tracer = tracer
        self._trace = tracer.trace
        self._body = body
        self._calls = calls
        self._has_heaps = any(map(has_heap, args))
        self._path: Path | None = Path(dict(enumerate(args)), self._trace.region, tracer.made)
        self._outside = self._trace.region.loop
        self._loops: list[Turns] = []
        self._meetings: dict[int, Meeting] = {}
        self._end, self._returned = Meeting(), list[Value]()

    def result(self, recursive: str | None) -> Value | None:
        """What the function returns, or ``None`` if it never does.

        It is `recursive`, of this name, if it calls itself in its own place.
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
        """Follow one instruction; where it goes on, if the next one is where."""
        tracer = self._tracer
        tracer.made = path.made
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
                    raise Refused("a branch on what is no condition of the program's own")
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
                self._turn(turns, Path(dict(enumerate(called[1])), path.region, path.made))
                return None
        goes_on = tracer.call(call, path.registers, self._calls if is_returned else {})
        path.made, path.region = tracer.made, self._trace.region
        return path if goes_on else None

    # --- branches ---------------------------------------------------------------------

    def _arrive(self, at: int) -> None:
        """Close the loops that end before instruction `at`, meet who jumps there, open a loop."""
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
        """Go on where jumps lead to, and `path` if it comes from the instruction before."""
        paths = meeting.paths if path is None else [*meeting.paths, path]
        if not all(p.region.is_in(self._innermost()) for p in paths):
            raise Refused("a loop that is entered in its middle")
        self._trace.add(meeting.label)
        return joined(paths, {r for r in range(live.bit_length()) if live >> r & 1})

    def _go_on(self, path: Path) -> None:
        """Enter the region of `path`; one that follows a loop, if it comes from there."""
        if path.region.loop is not self._innermost():
            path.region = Region(path.region, self._innermost())
        self._trace.enter(path.region)

    def _jump(self, target: int, path: Path, unless: Truth | None = None) -> None:
        meeting = self._meetings.setdefault(target, Meeting())
        meeting.paths.append(path)
        self._trace.add(Jump(meeting.label, unless))

    def _branch(self, target: int, path: Path, truth: Truth, *, is_back: bool) -> Path:
        """Jump unless `truth` holds; each way is a region of its own in a loop."""
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
        """Begin a loop of instructions ``start … end``."""
        if self._has_heaps:
            raise Refused("a loop that is given a heap")
        if self._loops and end > self._loops[-1].end:
            raise Refused("loops that overlap")
        loop, before, live = Loop(self._innermost()), path.copy(), self._body.live[start]
        given = {r: v for r, v in before.registers.items() if live >> r & 1}
        meetings = {at: (m, len(m.paths)) for at, m in self._meetings.items()}
        turns = Turns(
            *(loop, start, end, before, Head(self._tracer, loop, given)),
            *(len(self._trace.steps), len(self._trace.loops), len(self._returned), meetings),
        )
        self._loops.append(turns)
        self._begin(turns)
        return turns

    def _again(self, turns: Turns) -> int:
        """Forget all that was done since a loop began, and begin it again; says where."""
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
        """Write the beginning of a loop, and go on with what it carries."""
        trace, before, head = self._trace, turns.path, turns.head
        trace.enter(before.region)
        trace.loops.append(turns.loop)
        region = Region(before.region, turns.loop)
        leaves = head.leaves(head.given)
        region.carried.update(to for to, _ in leaves if isinstance(to, Computed))
        for to, _ in leaves:
            if isinstance(to, Carried):
                to.given.clear()
                to.origins.clear()
        trace.add(carry_step(leaves, {}))
        turns.loop.first = len(trace.steps)
        trace.add(turns.label)
        trace.enter(region)
        self._path = Path(head.values, region, before.made).copy()

    def _turns(self, start: int) -> Turns:
        """The loop that a jump back to `start` is in."""
        for turns in self._loops:
            if (turns.start, turns.end) == (start, self._body.loops[start]):
                return turns
        raise Refused("a loop that is entered in its middle")

    def _turn(self, turns: Turns, path: Path) -> None:
        """Begin another turn with the registers of `path`."""
        if turns.head.widen(path.registers):
            raise _Widened(turns)
        leaves = turns.head.leaves(path.registers)
        given = [t for _, t in leaves if isinstance(t, Tensor) and not outlives(t, turns.loop)]
        if given:
            self._trace.enter(Region(path.region, turns.loop))
        self._trace.add(carry_step(leaves, {tensor: self._copied(tensor) for tensor in given}))
        self._trace.add(Jump(turns.label, is_back=True))

    def _copied(self, tensor: Tensor) -> Tensor:
        """A copy of `tensor`, whose memory is written in the next turn."""
        assert tensor.shape is not None
        size = self._tracer.size(tensor.shape, tensor.dtype)
        copy = Tensor(self._tracer.storage(size), tensor.dtype, tensor.shape)
        self._trace.add(Copy(copy, tensor, size))
        return copy

    def _leave(self) -> Value | None:
        """The end of the function, where all that return meet."""
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
        self._tracer.made = set[Storage]().union(*(p.made for p in paths))
        return joined_value(self._returned, paths)
