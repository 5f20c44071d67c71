"""ONNX's public suite, case by case: passes, and reasons of failures.

Run from the top of the repository: ``python -m bench.onnx_conformance [WORDS] [--json FILE]``.
Each case is a task, in processes of this machine or with ``--ray ADDRESS`` on a cluster; a crash or
a timeout is a failure of its case.  A run that was stopped goes on from its ``--journal``.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench.case_pool import Suite, outcomes
from bench.onnx_cases import cases, data_sets, is_core, model_of
from relax_egraph.cli import options
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import usable
from relax_egraph.errors import ModelError


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


def lost(case: Any, reason: str) -> Outcome:
    """The outcome of a case whose process died."""
    return Outcome(case.name, is_core(model_of(case)), reason)


def name(case: Any) -> str:
    """The kind and the name of a case, which together are unique."""
    return f"{case.kind} {case.name}"


def failed(one: Outcome) -> bool:
    """Whether the case did not pass."""
    return bool(one.reason)


def outcome_in(data: dict[str, Any]) -> Outcome:
    """The outcome of which `data` are the fields."""
    return Outcome(**data)


def quiet(case: Any) -> Outcome:
    """The outcome of `case`, without the warnings of numpy."""
    with np.errstate(all="ignore"):
        return outcome(case)


SUITE = Suite(
    "bench.onnx_conformance",
    *(name, quiet, lost, failed, asdict, outcome_in),
    libraries=("onnx", "numpy", "egglog", "llvmlite"),
)


def reported(each: Sequence[Outcome]) -> dict[str, Any]:
    """The counts of passing cases, of all and of core ones, and the reasons of failures."""

    def counted(some: Sequence[Outcome]) -> dict[str, int]:
        return {"passed": sum(not o.reason for o in some), "of": len(some)}

    failures = [asdict(o) for o in sorted(each, key=lambda o: o.name) if o.reason]
    core = [o for o in each if o.core]
    return {"all": counted(each), "core": counted(core), "failures": failures}


@click.command
@click.argument("words", nargs=-1)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write a report here.")
@options.processes
@options.tasks
def main(
    words: tuple[str, ...],
    file: Path | None,
    processes: int,
    ray_address: str | None,
    journal: Path | None,
) -> None:
    """Run the cases whose names have one of WORDS, or all: print failures and counts."""
    chosen, kept = cases(words), journal_in(journal)
    with executor_of(ray_address, processes) as executor:
        report = reported(usable(lambda: outcomes(SUITE, chosen, executor, kept)))
    for failure in report["failures"]:
        print(f"{failure['name']}: {failure['reason']}")
    for reason, count in Counter(f["reason"] for f in report["failures"]).most_common(40):
        print(f"{count:5} {reason[:150]}")
    for kind in ("all", "core"):
        print("{passed} of {of} pass".format(**report[kind]), f"({kind})")
    if file:
        file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    from bench import onnx_conformance  # functions of `__main__` have no name in other processes

    onnx_conformance.main()
