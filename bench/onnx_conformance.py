"""ONNX's public suite, case by case: passes, and reasons of failures.

Run from the top of the repository: ``python -m bench.onnx_conformance [WORDS] [--json FILE]``.
Each case runs in a process of a pool; a crash or a timeout is a failure of its case.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.case_pool import outcomes
from bench.onnx_cases import cases, data_sets, is_core, model_of
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


def run(chosen: Sequence[Any], workers: int) -> list[Outcome]:
    """The outcomes of `chosen`, in order."""
    return outcomes(chosen, outcome, _lost, workers, lambda o: bool(o.reason))


def _lost(case: Any, reason: str) -> Outcome:
    return Outcome(case.name, is_core(model_of(case)), reason)


def reported(each: Sequence[Outcome]) -> dict[str, Any]:
    """The counts of passing cases, of all and of core ones, and the reasons of failures."""

    def counted(some: Sequence[Outcome]) -> dict[str, int]:
        return {"passed": sum(not o.reason for o in some), "of": len(some)}

    failures = [asdict(o) for o in sorted(each, key=lambda o: o.name) if o.reason]
    core = [o for o in each if o.core]
    return {"all": counted(each), "core": counted(core), "failures": failures}


def main() -> int:
    """Print the failures and the number of passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    np.seterr(all="ignore")
    report = reported(run(cases(options.words), options.workers))
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
