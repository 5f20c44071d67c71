"""The speed at which a model reads its weights, and its error with smaller weights.

A model that reads its weights at the machine's bandwidth is as fast as possible with them: only
fewer bytes make it faster.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from bench.tables import ENOUGH

STORED_WITHIN = 0.02
"""The tolerance that int8 weights with a scale for each column meet."""

AT_THE_LIMIT = 0.9
"""The share of the machine's bandwidth above which no speedup is expected."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a model: the bytes of its weights, and the seconds of a run.

    `reading` are the seconds of a loop that reads as many bytes; `off` is the difference of its
    results from those of the original model, by the norm.
    """

    nbytes: int
    seconds: float
    reading: float
    off: float = 0.0

    @property
    def share(self) -> float:
        """The share of a run that reading its weights takes, at the machine's bandwidth."""
        return self.reading / self.seconds


@dataclass(frozen=True, slots=True)
class Weights:
    """A model in its original form, optimized, and optimized within `STORED_WITHIN`."""

    before: Form
    after: Form
    stored: Form

    @property
    def most(self) -> float:
        """A bound on the speedup of programs that read the weights of the optimized one."""
        return self.before.seconds / self.after.reading

    @property
    def is_at_the_limit(self) -> bool:
        """Whether the optimized model mostly reads its weights, at full bandwidth."""
        return self.after.share > AT_THE_LIMIT


def weights_table(models: Sequence[tuple[str, Weights]]) -> Table:
    """One line for each model: bytes read, share of the bandwidth, and the gain of fewer bits.

    If reading weights is everything, the possible gain is marked.
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
    """Remarks on models that are as fast as their weights can be read."""
    return [
        f"{name}: {w.after.share:.0%} of the machine's read bandwidth: with weights of "
        f"float32 no gain is more than {w.most:.2f}"
        for name, w in models
        if w.is_at_the_limit
    ]


def _change(texts: Iterable[str]) -> str:
    return " → ".join(texts)
