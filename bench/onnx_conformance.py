"""ONNX's public suite, case by case: passes, and reasons of failures.

Run from the top of the repository: ``python -m bench.onnx_conformance [WORDS] [--json FILE]``.
Each case runs in a process of a pool; a crash or a timeout is a failure of its case.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from bench.onnx_cases import cases, data_sets, is_core, model_of
from relax_egraph.errors import ModelError

TIME_LIMIT = 120.0

_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case: the `reason` is empty if it passed.

    A `core` case has only ONNX's own operators and plain dtypes.
    """

    name: str
    core: bool
    reason: str


def outcome(case: Any) -> Outcome:
    """Run `case` and compare the results, like the suite."""
    model = model_of(case)
    try:
        reason = _difference(case, model)
    except Exception as error:
        head, *problems = f"{type(error).__name__}: {error}".splitlines()
        reason = problems[0].strip() if problems and isinstance(error, ModelError) else head
    return Outcome(case.name, is_core(model), reason)


def _difference(case: Any, model: Any) -> str:
    """The defect of the results of `case`, or an empty text."""
    from onnx.backend.test.runner import Runner

    from relax_egraph.frontends.onnx_backend import backend

    prepared = backend.prepare(model)
    for inputs, expected in data_sets(case, model):
        results = prepared.run(inputs)
        try:
            Runner.assert_similar_outputs(
                expected, results, rtol=case.rtol, atol=case.atol, model_dir=case.model_dir
            )
        except AssertionError as error:
            return "wrong result: " + " ".join(str(error).split())[:300]
    return ""


def _work(channel: Connection, chosen: Sequence[Any]) -> None:
    while (number := channel.recv()) is not None:
        channel.send(outcome(chosen[number]))


def run(chosen: Sequence[Any], workers: int) -> list[Outcome]:
    """The outcomes of `chosen`, in order."""
    waiting, outcomes = list(reversed(range(len(chosen)))), dict[int, Outcome]()
    running: list[_Worker] = []
    while waiting or running:
        while waiting and len(running) < workers:
            running.append(_Worker(chosen, waiting.pop()))
        ready = wait([w.channel for w in running], 1.0)
        for worker in list(running):
            outcome_ = worker.outcome(worker.channel in ready)
            if outcome_ is None:
                continue
            outcomes[worker.number] = outcome_
            if not waiting or not worker.give(waiting[-1]):
                running.remove(worker)
                worker.process.kill()
            else:
                waiting.pop()
    return [outcomes[number] for number in range(len(chosen))]


class _Worker:
    """A process that runs cases one after the other."""

    def __init__(self, chosen: Sequence[Any], number: int) -> None:
        self._chosen = chosen
        self.channel, theirs = _FORK.Pipe()
        self.process = _FORK.Process(target=_work, args=(theirs, chosen), daemon=True)
        self.process.start()
        theirs.close()
        self.give(number)

    def give(self, number: int) -> bool:
        """Start case `number`; returns whether the process is alive."""
        self.number, self._since = number, time.monotonic()
        try:
            self.channel.send(number)
        except OSError:
            return False
        return self.process.is_alive()

    def outcome(self, is_ready: bool) -> Outcome | None:
        """The outcome of the case, if it is known."""
        case = self._chosen[self.number]
        try:
            if is_ready:
                return self.channel.recv()
        except (EOFError, OSError):
            return Outcome(case.name, is_core(model_of(case)), "the process died")
        if time.monotonic() - self._since <= TIME_LIMIT:
            return None
        self.process.kill()
        self.process.join()
        return Outcome(case.name, is_core(model_of(case)), f"takes more than {TIME_LIMIT:.0f} s")


def reported(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The counts of passing cases, of all and of core ones, and the reasons of failures."""

    def counted(some: Sequence[Outcome]) -> dict[str, int]:
        return {"passed": sum(not o.reason for o in some), "of": len(some)}

    failures = [asdict(o) for o in sorted(outcomes, key=lambda o: o.name) if o.reason]
    core = [o for o in outcomes if o.core]
    return {"all": counted(outcomes), "core": counted(core), "failures": failures}


def main() -> int:
    """Print the failures and the number of passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    np.seterr(all="ignore")
    outcomes = run(cases(options.words), options.workers)
    report = reported(outcomes)
    for failure in report["failures"]:
        print(f"{failure['name']}: {failure['reason']}")
    for reason, count in Counter(f["reason"] for f in report["failures"]).most_common(40):
        print(f"{count:5} {reason[:150]}")
    for kind in ("all", "core"):
        print("{passed} of {of} pass".format(**report[kind]), f"({kind})")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
