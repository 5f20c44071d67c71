"""One answer from the results of all e-graphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.engine import Report
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.reasons.why_not.answer import Kind, Near, WhyNot
from relax_egraph.reasons.why_not.rules import Rules
from relax_egraph.reasons.why_not.wording import place_of

NEAREST = 3
"""The most partial matches in an answer."""

_SHOWN = 8
"""The most values in the sentence of an answer."""


@dataclass(frozen=True, slots=True)
class RegionResult:
    """The matches of a rule in the e-graph of one region of `function`.

    `matches` counts the matches during the run.  At its end, the rule fully matches at the values
    `whole`; `here` tells that a target of the question is among them.  `near` are partial matches
    with their weights.  `lost` says why there is no e-graph.  The program has `uses` such regions.
    """

    function: str
    report: Report
    matches: int = 0
    whole: tuple[str, ...] = ()
    here: bool = False
    near: tuple[tuple[tuple[int, int, int], Near], ...] = ()
    lost: str = ""
    cut: bool = False
    uses: int = 1


def verdict(rule: Rule, rules: Rules, at: str | None, results: Sequence[RegionResult]) -> WhyNot:
    """The answer for `rule` from the `results` of all regions, anywhere or at the value `at`."""
    excluded = rules.excluded(rule)
    total = sum(r.matches * r.uses for r in results)
    whole = tuple(_where(results))
    alike = any(r.uses > 1 for r in results if r.whole)
    matches_there = at is None or any(r.here for r in results)
    ranked = sorted((n for r in results for n in r.near), key=lambda n: n[0], reverse=True)
    near = tuple(n for _, n in ranked[: 1 if at else NEAREST])
    where = f" at {at}" if at else ""
    kind: Kind
    if whole and matches_there and excluded:
        kind, said = "not in the run", f"is not in the run: {excluded}. It matches{_at(whole, at)}"
    elif total and whole and matches_there:
        kind, said = "fired", f"fired{where or _times(total)}{'' if at else _at(whole, at)}"
        said += ", and where the program repeats that" if alike and at is None else ""
        said += "".join(f"; {why}" for why in _bans(rule, results))
    elif whole and matches_there:
        kind, said = "held back", f"matches{_at(whole, at)}, but {_obstacle(rule, results)}"
    elif excluded:
        kind, said = "not in the run", f"is not in the run: {excluded}"
        said += f". It would not match{where}" if near else ""
    elif lost := [r.lost for r in results if r.lost]:
        kind, said = "held back", f"was not tried: {lost[0]}"
    elif absent := rules.absent(rule):
        kind, said = "absent", f"cannot match{where}: {_lacking(absent)}"
    elif near:
        kind, said = "partly matched", f"did not match{where}"
        said += f"; it fired{_at(whole, None)}" if whole and total else ""
    else:
        kind, said = "absent", f"did not match{where}: nothing in the program is like it"
    return WhyNot(
        rule.name,
        place_of(rule),
        kind,
        said,
        fired=whole if total else (),
        near=() if whole and matches_there else near,
        cut=any(r.cut for r in results),
    )


def _where(results: Sequence[RegionResult]) -> Iterator[str]:
    """The values at which the rule fully matches, with the function if there are several."""
    is_ambiguous = len({r.function for r in results}) > 1
    for r in results:
        yield from (f"{value} of {r.function}" if is_ambiguous else value for value in r.whole)


def _times(count: int) -> str:
    return " once" if count == 1 else f" {count} times"


def _at(values: Sequence[str], at: str | None) -> str:
    if at is not None:
        return f" at {at}"
    more = f" and {len(values) - _SHOWN} more" * (len(values) > _SHOWN)
    return f" at {', '.join(values[:_SHOWN])}{more}" if values else ""


def _bans(rule: Rule, results: Sequence[RegionResult]) -> Iterator[str]:
    bans = (ban for r in results for ban in r.report.bans if ban.rule == rule.name)
    return (str(ban).replace(f"{rule.name} is", "it was then") for ban in bans)


def _obstacle(rule: Rule, results: Sequence[RegionResult]) -> str:
    """The reason for which a rule that matches changed nothing."""
    for r in results:
        for phase in r.report.phases:
            if ban := next((b for b in phase.bans if b.rule == rule.name), None):
                return str(ban).replace(f"{rule.name} is", "it was")
            if rule.name in phase.sat_out:
                return f"back-off kept it out for {phase.sat_out[rule.name]} iterations"
    cut = next((r.report for r in results if r.whole and not r.report.saturated), None)
    if cut is not None:
        return f"the run ended before it could: {cut.stop_reason}"
    return "changed nothing: its result was there already"


def _lacking(heads: Sequence[str]) -> str:
    """The message about absent operators and relations `heads`."""
    nodes = [h for h in heads if h.startswith(("R.", "K."))]
    facts = [h for h in heads if h not in nodes]
    absent = f"the program has no {' and no '.join(nodes)}, and no rule makes one"
    return "; ".join(
        [absent] * bool(nodes) + [f"no rule deduces {' or '.join(facts)}"] * bool(facts)
    )
