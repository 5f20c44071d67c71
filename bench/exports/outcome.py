"""The outcome of an exported network: seconds, calls without a kernel, results, times."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import relax_egraph as rx
from bench.architectures.subject import Array
from bench.exports.files import Example, Exported, exported
from bench.exports.network import Network
from bench.sessions import session_of
from bench.timing import Run, least
from relax_egraph.ir.run_time import PREFIX
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.instrument import CallEvent

TOLERANCE = 1e-4
"""The allowed difference from torch, relative to the largest magnitude of the result."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of the network `name`.

    `seconds` are CPU seconds of the steps ``import``, ``optimize`` and ``build``; `late` counts the
    calls of each operator in numpy by a run at the first sizes; `differences` are from torch, one
    for each of the sizes; `runs` are seconds of a call, by system.  `gap` is the largest of the
    regions.  If a step failed, `failure` is the step and the reason.
    """

    name: str
    kind: str
    seconds: dict[str, float]
    late: dict[str, int] = field(default_factory=dict[str, int])
    differences: tuple[float, ...] = ()
    runs: dict[str, float] = field(default_factory=dict[str, float])
    gap: float = float("nan")
    failure: str = ""

    @property
    def ratio(self) -> float:
        """The time of onnxruntime relative to ours."""
        return self.runs["onnxruntime"] / self.runs["ours"] if self.runs else float("nan")

    @property
    def passed(self) -> bool:
        """Whether it runs and agrees with torch at all sizes."""
        return not self.failure and all(d < TOLERANCE for d in self.differences)


def outcome_of(network: Network, folder: Path, seconds: float) -> Outcome:
    """Run all steps for `network`; each system is timed for about `seconds`."""
    outcome = Outcome(network.name, network.kind, {})

    def step(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        try:
            return work()
        except Exception as error:
            message = f"{name}: {type(error).__name__}: {error}"
            raise _Failed(message) from error
        finally:
            outcome.seconds[name] = time.process_time() - start

    try:
        files: Exported = step("export", lambda: exported(network, folder))
        module: rx.IRModule = step("import", lambda: rx.from_onnx(files.path))
        best: Explanation = step("optimize", lambda: rx.explain(module))
        executable: Executable = step("build", lambda: rx.build(best.module))
        machine = rx.VirtualMachine(executable, num_threads=1)
        differences = step("run", lambda: tuple(_difference(machine, e) for e in files.examples))
        first = files.examples[0]
        return Outcome(
            network.name,
            network.kind,
            outcome.seconds,
            _late(executable, first),
            differences,
            step("time", lambda: _times(files.path, machine, first, seconds)),
            max((r.extraction.gap for r in best.regions), default=0.0),
        )
    except _Failed as failed:
        return Outcome(network.name, network.kind, outcome.seconds, failure=str(failed))


class _Failed(Exception):
    """A step of a network failed."""


def _difference(machine: rx.VirtualMachine, example: Example) -> float:
    """The largest difference from torch, relative to the largest magnitude of its result."""
    result: Array = np.array(machine["main"](*example.inputs.values()))
    wanted = example.expected
    if result.shape != wanted.shape:
        return float("inf")
    return float(np.abs(result - wanted).max() / np.abs(wanted).max())


def _late(executable: Executable, example: Example) -> dict[str, int]:
    """The number of calls of each operator as a packed function, in one run."""
    machine, calls = rx.VirtualMachine(executable, num_threads=1), Counter[str]()

    def count(event: CallEvent) -> None:
        if event.when == "before" and event.name.startswith(PREFIX):
            calls[event.name.removeprefix(PREFIX)] += 1

    machine.set_instrument(count)
    machine["main"](*example.inputs.values())
    return dict(calls.most_common())


def _times(
    path: Path, machine: rx.VirtualMachine, example: Example, seconds: float
) -> dict[str, float]:
    """The times of ours and onnxruntime's, on one thread, taking turns."""
    ours = partial(machine["main"], *example.inputs.values())
    return least({"ours": ours, "onnxruntime": _session(path, example)}, seconds)


def _session(path: Path, example: Example) -> Run:
    session = session_of(path)
    names = {i.name for i in session.get_inputs()}
    inputs = {name: value for name, value in example.inputs.items() if name in names}
    return partial(session.run, None, inputs)
