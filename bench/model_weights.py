"""How fast the weights of a model are read, and what is left of them within a tolerance.

A model that reads its weights as fast as the machine reads memory is as fast as it can be with
them: then only fewer bytes make it faster.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from bench.tables import ENOUGH

STORED_WITHIN = 0.02
"""The tolerance: what int8 with a scale for each column keeps to."""

AT_THE_LIMIT = 0.9
"""The share of the machine's bandwidth from which on nothing faster is to be expected."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a model: the bytes of its weights, and the seconds of a run.

    `reading` are the seconds in which a loop reads as many bytes; `off` is how far its results are
    from those of the model as it came, by the norm.
    """

    nbytes: int
    seconds: float
    reading: float
    off: float = 0.0

    @property
    def share(self) -> float:
        """What share of a run the reading of its weights takes, at the machine's bandwidth."""
        return self.reading / self.seconds


@dataclass(frozen=True, slots=True)
class Weights:
    """A model as it came, as it was optimized, and so within `STORED_WITHIN`."""

    before: Form
    after: Form
    stored: Form

    @property
    def most(self) -> float:
        """No program that reads the weights of the optimized one gains more."""
        return self.before.seconds / self.after.reading

    @property
    def is_at_the_limit(self) -> bool:
        """Whether the optimized model does little but read its weights, at full bandwidth."""
        return self.after.share > AT_THE_LIMIT


def weights_table(models: Sequence[tuple[str, Weights]]) -> Table:
    """One line a model: what it reads, how near to the machine's bandwidth, what fewer bits gain.

    Where reading weights is all, the gain that is possible is marked.
    """
    title = f"weights, each read once; within a tolerance of {STORED_WITHIN}"
    table = Table(title=title, title_justify="left")
    table.add_column("model", no_wrap=True)
    columns = ("MB", "GB/s", "of read bandwidth", "gain", "at most")
    for column in (*columns, "MB within", "ms", "gain", "off by"):
        table.add_column(column, justify="right")
    for name, w in models:
        forms = (w.before, w.after)
        table.add_row(
            name,
            _change(f"{f.nbytes / 1e6:.1f}" for f in forms),
            _change(f"{f.nbytes / f.seconds / 1e9:.1f}" for f in forms),
            _change(f"{f.share:.0%}" for f in forms),
            f"{w.before.seconds / w.after.seconds:.2f}",
            Text(f"{w.most:.2f}", ENOUGH if w.is_at_the_limit else ""),
            f"{w.stored.nbytes / 1e6:.1f}",
            f"{w.stored.seconds * 1e3:.2f}",
            f"{w.before.seconds / w.stored.seconds:.2f}",
            f"{w.stored.off:.1e}",
        )
    return table


def bounds(models: Sequence[tuple[str, Weights]]) -> list[str]:
    """What is to be said of models that are as fast as their weights can be read."""
    return [
        f"{name}: {w.after.share:.0%} of the machine's read bandwidth: with weights of "
        f"float32 no gain is more than {w.most:.2f}"
        for name, w in models
        if w.is_at_the_limit
    ]


def _change(texts: Iterable[str]) -> str:
    return " → ".join(texts)
