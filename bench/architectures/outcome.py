"""The outcome of an exported network: its program, results and times."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

import relax_egraph as rx
from bench.architectures.export import Exported, Exporter, exported
from bench.architectures.subject import Array, Sizes, Subject
from bench.census import census
from bench.sessions import session_of
from bench.timing import Run, least
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.optimize.explanation import Explanation

TOLERANCE = 1e-4
"""The allowed difference from torch, relative to the largest magnitude of the result."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The difference of the result from torch's at `sizes`."""

    sizes: Sizes
    difference: float

    @property
    def is_close(self) -> bool:
        """Whether the difference is small enough."""
        return self.difference < TOLERANCE


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of the subject `name`.

    `seconds` are CPU seconds of the steps ``export``, ``import``, ``optimize`` and ``build``; `gap`
    is the largest of the regions; `families` counts the matches of rules by family, `operators` the
    operators of the optimized program; `runs` are seconds of a call, by system.  If a step failed,
    `failure` is the step and the reason, and nothing else is set.
    """

    name: str
    layers: int
    seconds: dict[str, float]
    failure: str = ""
    gap: float = float("nan")
    families: dict[str, int] = field(default_factory=dict[str, int])
    operators: dict[str, int] = field(default_factory=dict[str, int])
    kernels: int = 0
    agreements: tuple[Agreement, ...] = ()
    runs: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def passed(self) -> bool:
        """Whether it runs and agrees with torch at all sizes."""
        return not self.failure and all(a.is_close for a in self.agreements)


def outcome_of(subject: Subject, exporter: Exporter, seconds: float) -> Outcome:
    """Run all steps for `subject`; each system is timed for about `seconds`."""
    steps: dict[str, float] = {}

    def step(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        try:
            return work()
        except Exception as error:
            raise _Failed(f"{name}: {type(error).__name__}: {error}") from error
        finally:
            steps[name] = time.process_time() - start

    try:
        export: Exported = step("export", lambda: exported(subject, exporter))
        module: rx.IRModule = step("import", lambda: rx.from_onnx(export.model))
        explained: Explanation = step("optimize", lambda: rx.explain(module))
        executable = step("build", lambda: rx.build(explained.module))
        machine = rx.VirtualMachine(executable, num_threads=1)
        agreements = step("run", lambda: _agreements(subject, export, machine))
        runs = step("time", lambda: _times(subject, export, machine, seconds))
    except _Failed as failed:
        return Outcome(subject.name, subject.layers, steps, str(failed))
    counts = census(explained.module)
    return Outcome(
        subject.name,
        subject.layers,
        steps,
        gap=max((r.extraction.gap for r in explained.regions), default=0.0),
        families=_families(explained),
        operators=dict(counts.operators),
        kernels=counts.kernels.total(),
        agreements=agreements,
        runs=runs,
    )


class _Failed(Exception):
    """A step of a subject failed."""


def _agreements(
    subject: Subject, export: Exported, machine: rx.VirtualMachine
) -> tuple[Agreement, ...]:
    agreements: list[Agreement] = []
    for sizes in subject.sizes:
        inputs = subject.drawn(sizes)
        expected, result = export.expected(inputs), np.array(machine["main"](*inputs.values()))
        agreements.append(Agreement(sizes, _difference(result, expected)))
    return tuple(agreements)


def _difference(result: Array, expected: Array) -> float:
    """The largest difference, relative to the largest magnitude of `expected`."""
    if result.shape != expected.shape:
        return np.inf
    return float(np.abs(result - expected).max() / np.abs(expected).max())


def _times(
    subject: Subject, export: Exported, machine: rx.VirtualMachine, seconds: float
) -> dict[str, float]:
    """The times of ours and onnxruntime's, on one thread, taking turns."""
    inputs = subject.drawn(subject.sizes[0])
    ours = partial(machine["main"], *inputs.values())
    return least({"ours": ours, "onnxruntime": _session(export, inputs)}, seconds)


def _session(export: Exported, inputs: dict[str, Array]) -> Run:
    return partial(session_of(export.model.SerializeToString()).run, None, inputs)


def _families(explained: Explanation) -> dict[str, int]:
    """The number of matches of rules of each family."""
    family, counts = _family_of(), Counter[str]()
    for rule, count in explained.rules.items():
        counts[family.get(rule, "generated")] += count
    return dict(counts)


@cache
def _family_of() -> dict[str, str]:
    return {rule.name: rule.ruleset for rule in RuleBook.default().rewrites}
