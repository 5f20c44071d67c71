"""Reports of a run: the regions of each plan, and the weights that are stored in fewer bits."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from relax_egraph.egraph.encoding.narrowing import DTYPES, Narrowing
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.walk import constants_of
from relax_egraph.optimize.explanation import PlanReport, RegionReport, StoredWeights
from relax_egraph.optimize.planner import Plan
from relax_egraph.optimize.variants import Case, Part, cases


def plan_reports(
    plans: Mapping[str, Mapping[Case, Plan]], parts: Mapping[str, tuple[Part, ...]]
) -> tuple[PlanReport, ...]:
    """The regions of the module, with their counts, for each combination of `parts`."""
    counted: dict[tuple[int, int], RegionReport] = {}
    reports: list[PlanReport] = []
    for case in cases(parts, parts):
        regions = [
            report
            for of in plans.values()
            for own, plan in of.items()
            if set(own).issubset(case)
            for report in plan.regions
        ]
        uses = Counter(map(id, regions))
        for report in regions:
            count = uses[id(report)]
            counted.setdefault((id(report), count), replace(report, uses=count))
        distinct = tuple(counted[identity, count] for identity, count in uses.items())
        reports.append(PlanReport(", ".join(map(str, case)), distinct))
    return tuple(reports)


def stored_weights(
    best: IRModule, source: IRModule, narrowing: Narrowing
) -> tuple[StoredWeights, ...]:
    """The weights that `best` stores in fewer bits than `source` does, by dtype."""
    old, now = ([f for _, f in m.relax_functions()] for m in (source, best))
    known = {id(c.data) for c in constants_of(*old)}
    new = [c.data for c in constants_of(*now) if id(c.data) not in known]
    stored: list[StoredWeights] = []
    for dtype in DTYPES:
        sizes = [array.nbytes for array in new if array.dtype.name == dtype]
        if sizes:
            stored.append(StoredWeights(dtype, len(sizes), sum(sizes), narrowing.worst(dtype)))
    return tuple(stored)
