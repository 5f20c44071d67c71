"""The architectures and their outcomes."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

import relax_egraph as rx
from bench.architectures import images, sequences
from bench.architectures.export import Exporter
from bench.architectures.outcome import Outcome, outcome_of
from bench.architectures.subject import Subject
from bench.architectures.tables import fired_table, outcomes_table
from bench.transformer import Sizes, encoder

SUBJECTS = (*images.SUBJECTS, *sequences.SUBJECTS)


def outcomes_of(
    subjects: Sequence[Subject], exporter: Exporter, seconds: float, out: Console
) -> list[Outcome]:
    """The outcomes of all `subjects`; `out` shows the current one.

    Work that is done once for a process is done before the first clock starts.
    """
    rx.build(rx.optimize(encoder(Sizes(1))))
    outcomes: list[Outcome] = []
    for subject in subjects:
        with out.status(subject.name):
            outcomes.append(outcome_of(subject, exporter, seconds))
    return outcomes


def architectures_tables(seconds: float, out: Console) -> tuple[Table, Table]:
    """The tables of all architectures, exported by torch's default exporter."""
    outcomes = outcomes_of(SUBJECTS, "dynamo", seconds, out)
    return outcomes_table(outcomes, "dynamo"), fired_table(outcomes)
