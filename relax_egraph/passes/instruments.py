"""Instruments: they time, print or check the passes of a context."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from relax_egraph.errors import IllFormed
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.infra import Pass, Transform


@dataclass(slots=True)
class Timing:
    """The seconds of one run of a pass, nested passes included."""

    name: str
    seconds: float = 0.0
    children: list["Timing"] = field(default_factory=list["Timing"])


@dataclass(slots=True)
class PassTiming:
    """Instrument: times each run of a pass, as a tree; runs that raise count too."""

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
        """The tree as text: a line in milliseconds for each run, indented under its caller."""
        lines: list[str] = []

        def walk(timings: list[Timing], depth: int) -> None:
            for t in timings:
                lines.append(f"{t.seconds * 1e3:10.3f} ms  {'  ' * depth}{t.name}")
                walk(t.children, depth + 1)

        walk(self.runs, 0)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PrintBefore:
    """Instrument: prints the module before each pass, or before the passes `names`."""

    names: Sequence[str] | None = None
    file: TextIO | None = None

    def __call__(self, running: Pass, module: IRModule, run: Transform) -> IRModule:
        """Print, then run."""
        if self.names is None or running.name in self.names:
            _print(f"before {running.name}", module, self.file)
        return run(module)


@dataclass(frozen=True, slots=True)
class PrintAfter:
    """Instrument: prints the module after each pass, or after the passes `names`."""

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
    """Instrument: raises `IllFormed`, which names the pass, if its result is not well-formed."""

    def __call__(self, running: Pass, module: IRModule, run: Transform) -> IRModule:
        """Run, then check."""
        result = run(module)
        if breaches := find_ill_formed(result):
            raise IllFormed("\n".join([f"after pass {running.name}:", *breaches]))
        return result
