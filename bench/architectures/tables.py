"""The outcomes of architectures as tables."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from bench.architectures.outcome import Agreement, Outcome
from bench.tables import ENOUGH, SHORT

STEPS = ("import", "optimize", "build")


def outcomes_table(outcomes: Sequence[Outcome], exporter: str) -> Table:
    """One line for each architecture: its difference from torch by sizes, kernels, seconds."""
    columns = ("agrees at", "difference", "kernels", "a layer", *STEPS, "gap", "ours, ms")
    title = f"architectures, exported by {exporter}, one thread, CPU seconds"
    table = Table("architecture", *columns, "onnxruntime", "/ ours", title=title)
    table.title_justify = "left"
    for o in outcomes:
        seconds = (f"{o.seconds[s]:.2f} s" if s in o.seconds else "" for s in STEPS)
        table.add_row(
            o.name,
            " ".join(_sizes(a) for a in o.agreements if a.is_close),
            _differences(o),
            str(o.kernels or ""),
            f"{o.kernels / o.layers:.1f}" if o.kernels else "",
            *seconds,
            f"{o.gap:.2%}" if o.runs else "",
            *(f"{each * 1e3:.2f}" for each in o.runs.values()),
            f"{o.runs['onnxruntime'] / o.runs['ours']:.2f}" if o.runs else "",
        )
    return table


def fired_table(outcomes: Sequence[Outcome]) -> Table:
    """The matches of rules by family, and the remaining operators."""
    table = Table("architecture", "families that fired", "operators", title="what fired")
    table.title_justify = "left"
    for o in outcomes:
        table.add_row(o.name, _counts(o.families), _counts(o.operators))
    return table


def _counts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)


def _sizes(agreement: Agreement) -> str:
    return "×".join(map(str, agreement.sizes.values()))


def _differences(outcome: Outcome) -> Text:
    if outcome.failure:
        return Text(outcome.failure.split(":")[0] + " fails", SHORT)
    largest = max(a.difference for a in outcome.agreements)
    return Text(f"{largest:.0e}", ENOUGH if outcome.passed else SHORT)
