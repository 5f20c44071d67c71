"""The cost of making models ready, as tables with bounds."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from bench.building import HELD_AT_MOST, Building
from bench.tables import ENOUGH, SHORT


def buildings_table(buildings: Sequence[Building]) -> Table:
    """CPU seconds with an empty cache and with a full one, megabytes, kernels."""
    table = Table(title="models: optimize + build, CPU s, MB", title_justify="left")
    table.add_column("model", no_wrap=True)
    columns = ("kernels", "cold", "wanted", "warm", "wanted")
    for column in (*columns, "weights", "live", "held at most", "/ (weights + live)"):
        table.add_column(column, justify="right")
    for b in buildings:
        table.add_row(
            b.name,
            str(b.kernels),
            *_seconds(b, "cold"),
            *_seconds(b, "warm"),
            f"{b.weights / 1e6:.1f}",
            f"{b.live / 1e6:.1f}",
            f"{b.cold.peak / 1e6:.1f}",
            _marked(f"{b.held:.2f} ≤ {HELD_AT_MOST}", b.held <= HELD_AT_MOST),
        )
    return table


def _seconds(b: Building, process: str) -> tuple[Text, str]:
    """The sum of both steps, and its bound."""
    making = {"cold": b.cold, "warm": b.warm}[process]
    wanted = b.wanted.get(process)
    text = f"{making.optimize:.2f} + {making.build:.2f}"
    if wanted is None:
        return Text(text), ""
    return _marked(text, making.seconds <= wanted), f"≤ {wanted:.2f}"


def _marked(text: str, enough: bool) -> Text:
    return Text(text, ENOUGH if enough else SHORT)
