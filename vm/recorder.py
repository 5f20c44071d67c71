"""Records the calls of packed functions and functions while an interpreter runs."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple, cast

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.vm.builtins import Packed
from relax_egraph.vm.call_report import Kind, Span, TimedCall
from relax_egraph.vm.decoding import Caller, CallSite, Code, Frame, Program
from relax_egraph.vm.dim_program import compile_dim
from relax_egraph.vm.executable import Array, Executable


class _Open(NamedTuple):
    """An active call and the number of calls around it; `registers` identify it."""

    name: str
    begin: float
    depth: int
    registers: Frame


class Recorder:
    """Records calls, and begin and end of functions, without references to arguments.

    It records only its own thread, and subtracts its overhead from all times.
    """

    def __init__(self, executable: Executable) -> None:
        self._kernels = executable.kernel_names
        self._work = {name: compile_dim(text) for name, text in executable.work.items()}
        self._prices = {name: p.seconds for name, p in executable.promises.items()}
        self._calls: list[TimedCall] = []
        self._spans: list[Span] = []
        self._open: list[_Open] = []
        self._begin = 0  # in nanoseconds
        self._thread = 0

    def record(
        self, run: Callable[[], object]
    ) -> tuple[float, tuple[TimedCall, ...], tuple[Span, ...]]:
        """The seconds of one run, and the calls in it."""
        self._calls, self._spans, self._open = [], [], []
        self._thread = get_ident()
        self._begin = time.perf_counter_ns()
        run()
        seconds = (time.perf_counter_ns() - self._begin) * 1e-9
        calls = sorted(self._calls, key=lambda c: c.begin)
        return seconds, tuple(calls), tuple(self._spans)

    def around(self, site: CallSite, callee: Packed) -> Packed:
        """A wrapper of `callee` that records its calls."""
        clock = time.perf_counter_ns

        def call(*args: Any) -> Any:
            if get_ident() != self._thread:
                return callee(*args)
            around, self._open = self._open, []  # a packed function may call functions
            begin = clock() - self._begin
            result = callee(*args)
            end = clock()
            self._open = around
            self._note(site, begin * 1e-9, (end - self._begin) * 1e-9, (*args, result))
            self._begin += clock() - end
            return result

        return call

    def _note(self, site: CallSite, begin: float, end: float, values: tuple[Any, ...]) -> None:
        """Add a call of `site`; `values` are its arguments and results."""
        arrays = tuple(_arrays(values))
        kind = self._kind(site.callee)
        call = TimedCall(
            kind,
            site.callee,
            site.function,
            site.at,
            site.origin,
            begin,
            end,
            end - begin,
            tuple(f"{a.dtype.name}{list(a.shape)}" for a in arrays),
            max(arrays, key=lambda a: a.nbytes).dtype.name if arrays else "",
            _moved(kind, arrays),
            self._operations(site.callee, values) if kind == "kernel" else None,
            price=self._prices.get(site.callee) if kind == "kernel" else None,
        )
        self._calls.append(call)

    def _kind(self, name: str) -> Kind:
        if name in self._kernels:
            return "kernel"
        return "builtin" if name.startswith("vm.builtin.") else "packed"

    def _operations(self, name: str, values: tuple[Any, ...]) -> int | None:
        if name not in self._work:
            return None
        try:
            return self._work[name]([v for v in values if type(v) is int])
        except (IndexError, RunError):  # a text that does not match the kernel
            return None

    # --- functions ------------------------------------------------------------------------

    def follow(self, program: Program) -> None:
        """Record begin and end of calls of `program`."""
        code = program.code
        for at, instruction in enumerate(code):
            if at == 0 or instruction[0] == Code.RET:
                returns = instruction[0] == Code.RET
                code[at] = Code.PAUSE, partial(self._pass, at == 0, returns), instruction, None

    def _pass(
        self,
        first: bool,
        returns: bool,
        program: Program,
        registers: Frame,
        at: int,
        tail_calls: int,
        callers: Sequence[Caller],
    ) -> None:
        """The hook before the first instruction of a function, and before its return."""
        if get_ident() != self._thread:
            return
        clock = time.perf_counter_ns()
        now, depth = (clock - self._begin) * 1e-9, len(callers)
        jumped = bool(self._open) and self._open[-1].registers is registers
        if first and not jumped:
            self._close(depth, now)  # the caller that this tail call replaces
            self._open.append(_Open(program.function.name, now, depth, registers))
        if returns:
            self._close(depth, now)
        self._begin += time.perf_counter_ns() - clock

    def _close(self, depth: int, now: float) -> None:
        while self._open and self._open[-1].depth >= depth:
            ended = self._open.pop()
            self._spans.append(Span(ended.name, ended.begin, now))


def _moved(kind: Kind, arrays: tuple[Array, ...]) -> int:
    """The bytes of `arrays`, each once; the last one of a kernel is written, so it counts apart."""
    if kind == "builtin":
        return 0
    written = arrays[-1:] if kind == "kernel" else ()
    read = {id(a): a for a in arrays[: len(arrays) - len(written)]}
    return sum(a.nbytes for a in (*read.values(), *written))


def _arrays(values: tuple[Any, ...]) -> Iterator[Array]:
    """The arrays among `values`, and in their fields."""
    for value in values:
        if isinstance(value, tuple):
            yield from _arrays(cast(tuple[Any, ...], value))
        elif isinstance(value, np.ndarray):
            yield value
