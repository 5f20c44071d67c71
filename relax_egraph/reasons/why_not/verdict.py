"""From what was seen in each e-graph to one answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.engine import Report
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.reasons.why_not.answer import Kind, Near, WhyNot
from relax_egraph.reasons.why_not.rules import Rules
from relax_egraph.reasons.why_not.wording import place_of

NEAREST = 3
"""So many partial matches are told."""

_SHOWN = 8
"""So many values are named where a rule fired."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a rule in the e-graph of one region of `function`.

    It matched so many `matches` times while it ran, and in the end all of it holds at the values
    `whole`, and `here` if that is where it was asked about.  `near` are partial matches, each with
    its weight.  `lost` says why there is no e-graph.  The program has `uses` such regions.
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


def verdict(rule: Rule, rules: Rules, at: str | None, seen: Sequence[Seen]) -> WhyNot:
    """What became of `rule`, in all that was `seen`, or at value `at`."""
    excluded = rules.excluded(rule)
    total = sum(s.matches * s.uses for s in seen)
    whole = tuple(_where(seen))
    alike = any(s.uses > 1 for s in seen if s.whole)
    asked = at is None or any(s.here for s in seen)
    ranked = sorted((n for s in seen for n in s.near), key=lambda n: n[0], reverse=True)
    near = tuple(n for _, n in ranked[: 1 if at else NEAREST])
    where = f" at {at}" if at else ""
    kind: Kind
    if whole and asked and excluded:
        kind, said = "not in the run", f"is not in the run: {excluded}. It matches{_at(whole, at)}"
    elif total and whole and asked:
        kind, said = "fired", f"fired{where or _times(total)}{'' if at else _at(whole, at)}"
        said += ", and where the program repeats that" if alike and at is None else ""
        said += "".join(f"; {why}" for why in _bans(rule, seen))
    elif whole and asked:
        kind, said = "held back", f"matches{_at(whole, at)}, but {_held_back(rule, seen)}"
    elif excluded:
        kind, said = "not in the run", f"is not in the run: {excluded}"
        said += f". It would not match{where}" if near else ""
    elif lost := [s.lost for s in seen if s.lost]:
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
        near=() if whole and asked else near,
        cut=any(s.cut for s in seen),
    )


def _where(seen: Sequence[Seen]) -> Iterator[str]:
    """The values at which all of the rule holds; those of several functions with these."""
    several = len({s.function for s in seen}) > 1
    for s in seen:
        yield from (f"{value} of {s.function}" if several else value for value in s.whole)


def _times(count: int) -> str:
    return " once" if count == 1 else f" {count} times"


def _at(values: Sequence[str], at: str | None) -> str:
    if at is not None:
        return f" at {at}"
    more = f" and {len(values) - _SHOWN} more" * (len(values) > _SHOWN)
    return f" at {', '.join(values[:_SHOWN])}{more}" if values else ""


def _bans(rule: Rule, seen: Sequence[Seen]) -> Iterator[str]:
    bans = (ban for s in seen for ban in s.report.bans if ban.rule == rule.name)
    return (str(ban).replace(f"{rule.name} is", "it was then") for ban in bans)


def _held_back(rule: Rule, seen: Sequence[Seen]) -> str:
    """Why a rule that matches did nothing."""
    for s in seen:
        for phase in s.report.phases:
            if ban := next((b for b in phase.bans if b.rule == rule.name), None):
                return str(ban).replace(f"{rule.name} is", "it was")
            if rule.name in phase.sat_out:
                return f"back-off kept it out for {phase.sat_out[rule.name]} iterations"
    cut = next((s.report for s in seen if s.whole and not s.report.saturated), None)
    if cut is not None:
        return f"the run ended before it could: {cut.stop_reason}"
    return "changed nothing: what it makes was there already"


def _lacking(heads: Sequence[str]) -> str:
    """That there are none of the operators and relations `heads`."""
    nodes = [h for h in heads if h.startswith(("R.", "K."))]
    facts = [h for h in heads if h not in nodes]
    said = [f"the program has no {' and no '.join(nodes)}, and no rule makes one"] if nodes else []
    return "; ".join(said + [f"no rule deduces {' or '.join(facts)}"] * bool(facts))
