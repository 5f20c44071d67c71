"""Times of rules: a second run of a saturation, with egglog's own statistics.

egglog tells Python the time of a rule in whole milliseconds, of which most rules take none; it
writes nanoseconds to a file.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.encoding.bulk import load_view
from relax_egraph.egraph.encoding.prepared import prepared
from relax_egraph.egraph.saturation.course import Course, Halt
from relax_egraph.egraph.saturation.in_process import Saturating, untold
from relax_egraph.egraph.saturation.run import Run
from relax_egraph.errors import SaturationError
from relax_egraph.ir.collection import no_collection


@dataclass(frozen=True, slots=True)
class RuleTime:
    """The seconds in which a rule was searched, its matches, and the iterations that searched it.

    An iteration searches a rule if one of the tables that it reads has new rows, and none is empty.
    """

    seconds: float
    matches: int
    iterations: int


def rule_times(runs: Iterable[Saturating]) -> Mapping[str, RuleTime]:
    """The times of the rules in `runs`, which are repeated; a rule that was not searched has none.

    The rules are those of the book and of users, and those that lower operators.
    """
    seconds = defaultdict[str, float](float)
    matches, iterations = Counter[str](), Counter[str]()
    for done in runs:
        with TemporaryDirectory() as folder, done.again():
            before, after = _repeated(done, Path(folder) / "statistics.json")
        for name, spent in after[_SECONDS].items():
            seconds[name] += _seconds(spent) - _seconds(before[_SECONDS].get(name, _NONE))
        for name, count in after[_MATCHES].items():
            matches[name] += count - before[_MATCHES].get(name, 0)
        for iteration in after["iterations"][len(before["iterations"]) :]:
            iterations.update(iteration["rule_set_report"]["rule_reports"].keys())
    return {name: RuleTime(seconds[name], matches[name], n) for name, n in iterations.items()}


_SECONDS, _MATCHES = "search_and_apply_time_per_rule", "num_matches_per_rule"

_NONE: Mapping[str, int] = {"secs": 0, "nanos": 0}


def _repeated(done: Saturating, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The statistics of the e-graph before and after the run; they outlive the e-graph's rows."""
    report, book = done.report, done.book()
    halts = (Halt(k, p.iterations, p.stop) for k, p in enumerate(report.phases))
    course = Course(report.bans, tuple(halts))
    schedule = tuple(replace(phase, seconds=inf) for phase in done.schedule())
    with no_collection(), prepared(book.program) as egraph:
        load_view(egraph, done.view, book.absent)
        before = _statistics(egraph, path)
        budget = replace(done.budget, seconds=inf)
        again = Run(egraph, done.view, book, budget, course, inf, untold, counted=True)
        if isinstance(again.schedule(schedule), Course):
            raise SaturationError("the run cannot be repeated: the e-graph outgrew its bounds")
        return before, _statistics(egraph, path)


def _statistics(egraph: EGraph, path: Path) -> Mapping[str, Any]:
    run_text(egraph, f"(print-stats :file {json.dumps(str(path))})")
    return json.loads(path.read_text("utf-8"))


def _seconds(spent: Mapping[str, int]) -> float:
    return spent["secs"] + spent["nanos"] * 1e-9
