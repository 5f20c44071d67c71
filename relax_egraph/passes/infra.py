"""Passes: functions from module to module that have a name, run under a context.

A `Pass` that is called runs; a pass inside a `Sequential` runs if the context enables it.
Instruments wrap every run, so that they see a pass that raises too.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, TextIO, TypeAlias

from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.well_formed import find_ill_formed

Transform: TypeAlias = Callable[[IRModule], IRModule]


@dataclass(frozen=True, slots=True)
class Pass:
    """A transformation of modules.

    `required` passes run just before this one.  A `Sequential` skips it under a context of
    an `opt_level` below its own.
    """

    name: str
    opt_level: int
    run: Transform
    required: tuple["Pass", ...] = ()

    def __call__(self, module: IRModule) -> IRModule:
        """Transform `module`, wrapped in the context's instruments, the first outermost."""
        for needed in self.required:
            module = needed(module)
        run = self.run
        for instrument in reversed(PassContext.current().instruments):
            run = _wrapped(instrument, self, run)
        return run(module)


Instrument: TypeAlias = Callable[[Pass, IRModule, Transform], IRModule]
"""Gets the pass, the module and the rest of the work; returns what that work returned."""


def _wrapped(instrument: Instrument, running: Pass, run: Transform) -> Transform:
    return lambda module: instrument(running, module, run)


@dataclass(slots=True)
class PassContext:
    """Which passes of a `Sequential` run, and what watches them: ``with PassContext(...):``.

    Passes are named by their `name`; a disabled pass stays off even if it is required.
    `config` holds options that passes read by key.
    """

    opt_level: int = 2
    required_pass: Sequence[str] = ()
    disabled_pass: Sequence[str] = ()
    instruments: Sequence[Instrument] = ()
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _entered: list[Token["PassContext | None"]] = field(
        default_factory=list[Token["PassContext | None"]], init=False, repr=False
    )

    @staticmethod
    def current() -> "PassContext":
        """The innermost context that is entered, or one of defaults."""
        return _current.get() or PassContext()

    def enables(self, candidate: Pass) -> bool:
        """Whether a `Sequential` runs `candidate` under this context."""
        if candidate.name in self.disabled_pass:
            return False
        return candidate.name in self.required_pass or self.opt_level >= candidate.opt_level

    def __enter__(self) -> "PassContext":
        self._entered.append(_current.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._entered.pop())


_current: ContextVar[PassContext | None] = ContextVar("pass_context", default=None)


def module_pass(
    *, name: str, opt_level: int = 0, required: Sequence[Pass] = ()
) -> Callable[[Transform], Pass]:
    """Make a pass of a function from module to module."""
    return lambda run: Pass(name, opt_level, run, tuple(required))


def function_pass(
    *, name: str, opt_level: int = 0, required: Sequence[Pass] = ()
) -> Callable[[Callable[[Function, IRModule], Function]], Pass]:
    """Make a pass of what rewrites one relax function, given the module as it was before the pass.

    A module of which no function changed is returned itself.
    """

    def decorate(rewrite: Callable[[Function, IRModule], Function]) -> Pass:
        def run(module: IRModule) -> IRModule:
            functions: dict[str, BaseFunc] = dict(module.functions)
            for function_name, function in module.relax_functions():
                functions[function_name] = rewrite(function, module)
            changed = any(functions[n] is not f for n, f in module.functions.items())
            return replace(module, functions=functions) if changed else module

        return Pass(name, opt_level, run, tuple(required))

    return decorate


@dataclass(frozen=True, slots=True)
class Sequential:
    """Passes in order, those that the context enables; itself called and watched as a pass."""

    passes: "Sequence[Pass | Sequential]"
    name: str = "sequential"
    opt_level: int = 0

    def as_pass(self) -> Pass:
        """The sequence as one pass."""
        return Pass(self.name, self.opt_level, self._run)

    def __call__(self, module: IRModule) -> IRModule:
        """Transform `module` by each enabled pass."""
        return self.as_pass()(module)

    def _run(self, module: IRModule) -> IRModule:
        for step in self.passes:
            one = step.as_pass() if isinstance(step, Sequential) else step
            if PassContext.current().enables(one):
                module = one(module)
        return module


# --- instruments ----------------------------------------------------------------------


@dataclass(slots=True)
class Timing:
    """The seconds of one run of a pass, those of the passes inside it included."""

    name: str
    seconds: float = 0.0
    children: list["Timing"] = field(default_factory=list["Timing"])


@dataclass(slots=True)
class PassTiming:
    """Instrument: the time of each run of a pass, as a tree; a pass that raised counts too."""

    runs: list[Timing] = field(default_factory=list[Timing])
    _open: list[Timing] = field(default_factory=list[Timing], init=False, repr=False)

    def __call__(self, running: Pass, module: IRModule, run: Transform) -> IRModule:
        """Time `run`."""
        timing = Timing(running.name)
        (self._open[-1].children if self._open else self.runs).append(timing)
        self._open.append(timing)
        start = time.perf_counter()
        try:
            return run(module)
        finally:
            timing.seconds = time.perf_counter() - start
            self._open.pop()

    def render(self) -> str:
        """The tree as text: a line for each run, in milliseconds, indented under its caller."""
        lines: list[str] = []

        def walk(timings: list[Timing], depth: int) -> None:
            for t in timings:
                lines.append(f"{t.seconds * 1e3:10.3f} ms  {'  ' * depth}{t.name}")
                walk(t.children, depth + 1)

        walk(self.runs, 0)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PrintBefore:
    """Instrument: print the module before each pass, or before those of `names`."""

    names: Sequence[str] | None = None
    file: TextIO | None = None

    def __call__(self, running: Pass, module: IRModule, run: Transform) -> IRModule:
        """Print, then run."""
        if self.names is None or running.name in self.names:
            _print(f"before {running.name}", module, self.file)
        return run(module)


@dataclass(frozen=True, slots=True)
class PrintAfter:
    """Instrument: print the module after each pass, or after those of `names`."""

    names: Sequence[str] | None = None
    file: TextIO | None = None

    def __call__(self, running: Pass, module: IRModule, run: Transform) -> IRModule:
        """Run, then print."""
        result = run(module)
        if self.names is None or running.name in self.names:
            _print(f"after {running.name}", result, self.file)
        return result


def _print(title: str, module: IRModule, file: TextIO | None) -> None:
    print(f"# --- {title}\n{module.script()}", file=file or sys.stdout)


@dataclass(frozen=True, slots=True)
class AssertWellFormed:
    """Instrument: raise `IllFormed`, naming the pass, if its result breaks a law of the IR."""

    def __call__(self, running: Pass, module: IRModule, run: Transform) -> IRModule:
        """Run, then check."""
        result = run(module)
        if breaches := find_ill_formed(result):
            raise IllFormed("\n".join([f"after pass {running.name}:", *breaches]))
        return result
