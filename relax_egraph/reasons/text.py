"""Figures as tables for a terminal, at most 100 columns wide."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from relax_egraph.optimize.sizes import at_assumed
from relax_egraph.reasons.page.charts import bars
from relax_egraph.reasons.times import step_text, time_text

MOST_LINES = 120
"""The most bindings that are printed of each program."""

_BAR = 12
"""The length of the longest bar, in characters."""


def text_of(figures: Mapping[str, Any]) -> Group:
    """The tables of `figures` from `figures_of`, without proofs and e-graphs."""
    return Group(*_parts(figures))


def _parts(figures: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _programs(figures)
    yield _kernels(figures["kernels"])
    yield _rules(figures)
    yield _phases(figures["regions"])
    for step in figures["steps"]:
        yield Text(f"before planning, {step['name']} changed {', '.join(step['functions'])}")
    for name, reason in figures["opaque"].items():
        yield Text(f"{name} stays as it is: {reason}")
    for demand in figures["demands"]:
        yield Text("assumed from the program: {condition} ({operator}, {operand})".format(**demand))
    for problem in figures["missing"].values():
        yield Text(problem)
    yield Text(_costs(figures))


def _costs(figures: Mapping[str, Any]) -> str:
    before, cost, bound = (time_text(figures[k]) for k in ("cost_before", "cost", "bound"))
    at = at_assumed(figures["assumed"])
    return f"cost {before} → {cost}{at}, proven bound {bound}, gap {figures['gap']:.2%}"


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", expand=False)


def _programs(figures: Mapping[str, Any]) -> Table:
    """The bindings of both programs, each with the kernel that computes it."""
    table = _table("before and after: what each kernel computes")
    for head in ("before", "after"):
        table.add_column("", justify="right", style="dim")
        table.add_column(head, ratio=1, overflow="fold")
    before = [
        (_numbers(line["kernels"]), _binding(line) + _fate(line["fate"]))
        for line in figures["before"]
        if line["kernels"] or line["fate"]
    ]
    after = [
        (_numbers([line["kernel"]]), _binding(line))
        for line in figures["after"]
        if line["kernel"] is not None
    ]
    pairs = list(zip_longest(before, after, fillvalue=("", "")))
    for left, right in pairs[:MOST_LINES]:
        table.add_row(*map(escape, (*left, *right)))
    if len(pairs) > MOST_LINES:
        table.add_row("", f"… {len(pairs) - MOST_LINES} more lines", "", "")
    return table


def _numbers(kernels: Sequence[int]) -> str:
    shown = ",".join(map(str, kernels[:2]))
    return f"{shown},…" if len(kernels) > 2 else shown


def _binding(line: Mapping[str, Any]) -> str:
    """A binding on one line, without its type, with numbered constants: ``const[3]``."""
    text = " ".join(line["text"].split()).replace("( ", "(").replace(" )", ")")
    text = text.replace('metadata["relax.expr.Constant"]', "const")
    _, equals, value = text.partition(" = ")
    return f"{line['name']} = {value}" if equals else text


def _fate(fate: str) -> str:
    return f"  ({fate})" if fate else ""


def _kernels(kernels: Sequence[Mapping[str, Any]]) -> Table:
    """The kernels; calls of one function through the same rules share a row."""
    table = _table("kernels, and the rules that led to them")
    table.add_column("kernel", justify="right")
    table.add_column("calls", ratio=2, overflow="fold")
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("rules in order", ratio=3, overflow="fold")
    alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for kernel in kernels:
        rules = None if kernel["rules"] is None else tuple(kernel["rules"])
        alike.setdefault((kernel["calls"], kernel["seconds"], rules), []).append(kernel)
    for (calls, seconds, rules), some in alike.items():
        numbers = _numbers([kernel["kernel"] for kernel in some])
        chain = "?" if rules is None else " → ".join(rules) or "–"
        times = f" ({len(some)} times)" * (len(some) > 1)
        table.add_row(numbers, escape(calls) + times, time_text(seconds), escape(chain))
    return table


def _rules(figures: Mapping[str, Any]) -> Table:
    """The rules that led to the result, the largest gain first, and the number of all others."""
    table = _table("rules")
    table.add_column("rule", overflow="fold")
    for head in ("matches", "new nodes", "time", "kernels"):
        table.add_column(head, justify="right")
    table.add_column("gain", min_width=_BAR + 7)
    others: list[Mapping[str, Any]] = []
    for bar in bars(figures):
        rule = bar.rule
        if bar.is_idle:
            others.append(rule)
            continue
        drawn = "█" * round(bar.width / 100 * _BAR)
        gain = "?" if rule["share"] is None else f"{drawn} {rule['share']:.1%}".strip()
        nodes, used = ("?" if rule[k] is None else str(rule[k]) for k in ("made", "kernels"))
        cells = (str(rule["matches"]), nodes, step_text(rule["seconds"]), used, gain)
        table.add_row(escape(rule["rule"]), *cells)
    if others:
        table.add_section()
        matches = str(sum(rule["matches"] for rule in others))
        nodes = str(sum(rule["made"] or 0 for rule in others))
        spent = step_text(sum(rule["seconds"] for rule in others))
        table.add_row(f"{len(others)} more, no part of the result", matches, nodes, spent, "0", "")
    return table


def _phases(regions: Sequence[Mapping[str, Any]]) -> Table:
    """The phases of each region with their stop reasons, and the status of extraction."""
    table = _table("phases")
    table.add_column("region", overflow="fold")
    table.add_column("phase")
    for head in ("iterations", "nodes", "time"):
        table.add_column(head, justify="right")
    table.add_column("stopped", overflow="fold")
    for number, region in enumerate(regions):
        uses = f", {region['uses']} times" * (region["uses"] > 1)
        name = escape(f"{number} of {region['function']}{uses}")
        for phase in region["phases"]:
            counts = map(str, (phase["iterations"], phase["nodes"]))
            stop = "; ".join((phase["stop"], *phase["bans"]))
            cells = (phase["phase"], *counts, time_text(phase["seconds"]), stop)
            table.add_row(name, *map(escape, cells))
            name = ""
        spent = time_text(region["seconds"]["extraction"])
        stop = "; ".join((region["status"], *region["notes"]))
        table.add_row(name, "extraction", "", "", spent, escape(stop))
        table.add_section()
    return table
