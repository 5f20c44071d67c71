"""The figures of an optimization as plain data, for text, JSON and the page."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from relax_egraph.egraph.engine import RuleBook
from relax_egraph.egraph.view import ClassId
from relax_egraph.ir.expr import Constant, DataflowVar, Expr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.optimize.explanation import Explanation, PlacedRegion, RegionReport
from relax_egraph.proof.text import step_lines
from relax_egraph.proof.trace import Trace
from relax_egraph.reasons.classes import ClassQuery, classes_of, leaf_text
from relax_egraph.reasons.definitions import Line, lines_of
from relax_egraph.reasons.gains import Gain
from relax_egraph.reasons.kernels import Running


@dataclass(frozen=True, slots=True)
class Known:
    """An optimization of `source` with the rules of `book`.

    Each of `running` has its `seconds` and its chain of rules in `chains`.  `new_nodes` counts
    nodes by rule; `gains` are those of the rules in the proof.  A field that is ``None`` is
    unknown, and `missing` says why.
    """

    source: IRModule
    explanation: Explanation
    book: RuleBook
    running: Sequence[Running]
    seconds: Sequence[float | None]
    chains: Sequence[Sequence[str]] | None
    new_nodes: Mapping[str, int] | None
    gains: Sequence[Gain] | None
    traces: Sequence[Trace] | None
    missing: Mapping[str, str]


def figures_of(known: Known) -> dict[str, Any]:
    """All figures, costs in seconds."""
    explanation = known.explanation
    before, after = lines_of(known.source), lines_of(explanation.module)
    places = _Places(before, explanation.placed)
    regions = explanation.egraphs
    kernels = [_kernel(number, known, places, regions) for number in range(len(known.running))]
    return {
        "cost_before": explanation.cost_before,
        "cost": explanation.cost,
        "bound": explanation.bound,
        "gap": explanation.gap,
        "assumed": {name: list(sizes) for name, sizes in explanation.assumed.items()},
        "plans": [
            {
                "sizes": p.sizes,
                "assumed": dict(p.assumed),
                "cost_before": p.cost_before,
                "cost": p.cost,
                "bound": p.bound,
            }
            for p in explanation.plans
        ],
        "weights": [asdict(stored) for stored in explanation.weights],
        "demands": [asdict(demand) for demand in explanation.demands],
        "steps": [asdict(step) for step in explanation.steps],
        "opaque": dict(explanation.opaque),
        "kernels": kernels,
        "rules": _rules(known),
        "regions": [_region(report) for report in explanation.regions],
        "lines_computed": len({line for kernel in kernels for line in kernel["lines"]}),
        "before": _before(before, places, kernels, explanation.placed),
        "after": _after(after, known.running),
        "egraph": classes_of([_class_query(report, known, places) for report in regions]),
        "traces": [_trace(trace) for trace in known.traces or ()],
        "missing": dict(known.missing),
    }


class _Places:
    """The lines of the source that define the variables of planned functions."""

    def __init__(self, lines: Sequence[Line], placed: Iterable[PlacedRegion]) -> None:
        self._lines = lines
        self._by_var: dict[Var, int] = {}
        by_name: dict[tuple[str, str], list[int]] = {}
        for number, line in enumerate(lines):
            if line.variable is not None:
                self._by_var[line.variable] = number
                by_name.setdefault((line.function, line.variable.name), []).append(number)
        for region in placed:
            for var in region.origin:
                named = by_name.get((region.source, var.name), [])
                if var not in self._by_var and len(named) == 1:
                    self._by_var[var] = named[0]  # a pass replaced the binding

    def of(self, var: Var) -> int | None:
        """The number of the line that defines `var`; ``None`` if a pass added the variable."""
        return self._by_var.get(var)

    def name(self, var: Var) -> str:
        """The name of `var` in the source."""
        place = self.of(var)
        return var.name if place is None else self._lines[place].name


def _kernel(
    number: int, known: Known, places: _Places, regions: Sequence[RegionReport]
) -> dict[str, Any]:
    one = known.running[number]
    graph = next(k for k, r in enumerate(regions) if r.view is one.placed.region.view)
    lines = {places.of(var) for var in one.replaces} - {None}
    return {
        "kernel": number,
        "function": one.function,
        "variable": one.variable.name,
        "calls": one.callee,
        "fused": one.is_fused,
        "operators": list(one.operators),
        "replaces": list(dict.fromkeys(map(places.name, one.replaces))),
        "lines": sorted(line for line in lines if line is not None),
        "seconds": known.seconds[number],
        "rules": None if known.chains is None else list(known.chains[number]),
        "classes": [f"{graph}.{c}" for c in one.choice.outputs],
    }


def _rules(known: Known) -> list[dict[str, Any]]:
    """The rules that matched; both directions of a birewrite are one rule."""
    explanation, infos = known.explanation, {rule.name: rule for rule in known.book.rules}
    matches, seconds = Counter[str](), defaultdict[str, float](float)
    for name, count in explanation.rules.items():
        matches[base(name)] += count
    for region in explanation.plans[0].regions:
        for name, spent in region.saturation.rule_seconds.items():
            seconds[base(name)] += spent
    worth = {gain.rule.name: gain for gain in known.gains or ()}
    used = None if known.chains is None else [set(map(base, rules)) for rules in known.chains]

    def of(name: str, matched: int) -> dict[str, Any]:
        rule = infos.get(name)
        return {
            "rule": name,
            "family": rule.ruleset if rule else "",
            "law": rule.law if rule else "",
            "float": rule.float_class if rule else "",
            "user": name in known.book.of_user,
            "matches": matched,
            "made": None if known.new_nodes is None else known.new_nodes.get(name, 0),
            "seconds": seconds[name],
            "kernels": None if used is None else sum(name in rules for rules in used),
            **_worth(
                worth.get(name), known.gains is not None and rule is not None, explanation.cost
            ),
        }

    return [of(name, count) for name, count in matches.most_common()]


def _worth(gain: Gain | None, is_known: bool, cost: float) -> dict[str, float | None]:
    """The cost of the program without a rule, and the rule's share of the gain."""
    if gain is None:
        return {"without": cost if is_known else None, "share": 0.0 if is_known else None}
    return {"without": gain.cost, "share": gain.share}


def base(name: str) -> str:
    """The name of a rule in its file; reports name one direction of a birewrite."""
    return name.removesuffix("=>").removesuffix("<=")


def _region(report: RegionReport) -> dict[str, Any]:
    return {
        "function": report.function,
        "uses": report.uses,
        "stop": report.stop,
        "status": report.extraction.status,
        "bound_source": report.extraction.bound_source,
        "cost_before": report.cost_before,
        "cost": report.extraction.cost,
        "bound": report.extraction.bound,
        "gap": report.extraction.gap,
        "candidates": report.extraction.candidates,
        "seconds": {
            "saturation": report.saturation.seconds,
            "extraction": report.extraction.seconds,
        },
        "phases": [
            {
                "phase": phase.name,
                "stop": str(phase.stop),
                "iterations": phase.iterations,
                "nodes": phase.nodes,
                "growth": list(phase.growth),
                "seconds": phase.seconds,
                "busiest": phase.busiest,
                "sat_out": dict(phase.sat_out),
                "bans": list(map(str, phase.bans)),
            }
            for phase in report.saturation.phases
        ],
        "notes": list(report.saturation.notes),
    }


def _trace(trace: Trace) -> dict[str, Any]:
    steps = [
        {
            "rule": step.rule,
            "backwards": step.backwards,
            "given": list(step.rules[1:]),
            "lines": step_lines(trace, step),
        }
        for step in trace.steps
    ]
    return {"function": trace.function, "output": trace.output, "steps": steps}


def _before(
    lines: Sequence[Line],
    places: _Places,
    kernels: Iterable[Mapping[str, Any]],
    placed: Sequence[PlacedRegion],
) -> list[dict[str, Any]]:
    by_line: dict[int, list[int]] = {}
    for kernel in kernels:
        for line in kernel["lines"]:
            by_line.setdefault(line, []).append(kernel["kernel"])
    planned = {region.source for region in placed}
    known = {place for region in placed for var in region.origin for place in [places.of(var)]}
    fates = {
        number: "not needed, or computed before"
        for number, line in enumerate(lines)
        if line.function in planned and isinstance(line.variable, DataflowVar)
        if number not in known
    }
    fates.update(_fates(placed, places))
    return [
        {
            "text": line.text,
            "name": line.name,
            "kernels": by_line.get(number, []),
            "fate": "" if number in by_line else fates.get(number, ""),
        }
        for number, line in enumerate(lines)
    ]


def _fates(placed: Iterable[PlacedRegion], places: _Places) -> Iterator[tuple[int, str]]:
    """The fates of the values of the source that no kernel computes, by line."""
    for region in placed:
        for var, c in region.origin.items():
            place = places.of(var)
            now = region.region.became.get(c)
            if place is None:
                continue
            if now is None:
                yield place, "not needed"
            elif region.region.view.classes[now].is_const:
                yield place, "a constant, computed once"
            elif now in region.values:
                yield place, f"the same as {_named(region.values[now])}"
            else:
                yield place, "rewritten: no kernel uses it any more"


def _named(value: Expr) -> str:
    return leaf_text(value) if isinstance(value, Var | Constant) else "another value"


def _after(lines: Sequence[Line], running: Sequence[Running]) -> list[dict[str, Any]]:
    """The lines of the result, each with its kernel, or with the fused function that it is in."""
    by_var = {one.variable: number for number, one in enumerate(running)}
    called = {one.callee for one in running}
    return [
        {
            "text": line.text,
            "name": line.name,
            "kernel": None if line.variable is None else by_var.get(line.variable),
            "calls": line.function if line.function in called else "",
        }
        for line in lines
    ]


def _class_query(report: RegionReport, known: Known, places: _Places) -> ClassQuery:
    """The classes that the kernels of an e-graph write, and the names of its values."""
    here = [one for one in known.running if one.placed.region.view is report.view]
    begin = dict.fromkeys(c for one in here for c in one.choice.outputs)
    placed = known.explanation.placed
    first = next((p for p in placed if p.region.view is report.view), None)
    names: dict[ClassId, dict[str, None]] = {}
    for var, c in first.origin.items() if first else ():
        if (now := report.became.get(c)) is not None:
            names.setdefault(now, {})[places.name(var)] = None
    return ClassQuery(report, list(begin), {c: list(called) for c, called in names.items()})
