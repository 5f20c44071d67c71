"""Measurements as tables: a ratio below its bound is highlighted, beside the bound."""

import math
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from bench.compiling import Compilation
from bench.figure import Figure
from bench.result import ONE_THREAD, OURS, UNOPTIMIZED, Result
from bench.workloads import Ratio

SHORT, ENOUGH = "bold red", "green"
"""The styles of figures that miss their bounds, and of others."""


def one_thread_table(results: Sequence[Result], title: str = "one thread, µs") -> Table:
    """Microseconds by system, and our speed relative to the best peer and the machine."""
    peers = _peers(results)
    table = _table(title, OURS, *peers, "best / ours", "of limit", "limit", "error")
    for result in results:
        table.add_row(
            result.name,
            _micro(result.seconds[OURS]),
            *(_micro(result.seconds.get(peer)) for peer in peers),
            _ratio(result, "peer"),
            _ratio(result, "limit"),
            _limit(result),
            f"{result.errors[OURS]:.0e}",
        )
    return table


def two_threads_table(results: Sequence[Result]) -> Table:
    """Microseconds on one thread and on two, and the effect of a busy core."""
    peers = _peers(results)
    ours = ("1 thread", "2 threads", "1 / 2", "contended: 1", "2", "1 / 2")
    table = _table("two threads, µs", *ours, *peers, "best / ours")
    for result in results:
        table.add_row(
            result.name,
            *(_micro(result.seconds.get(system)) for system in (ONE_THREAD, OURS)),
            _ratio(result, "two threads"),
            *(_micro(result.contended.get(system)) for system in (ONE_THREAD, OURS)),
            _ratio(result, "contended"),
            *(_micro(result.seconds.get(peer)) for peer in peers),
            _ratio(result, "peer on two threads"),
        )
    return table


def optimizer_table(results: Sequence[Result]) -> Table:
    """Microseconds of modules in their original and their optimized form."""
    table = _table("the optimizer, µs", "as written", "optimized", "ratio")
    for result in results:
        times = (_micro(result.seconds.get(system)) for system in (UNOPTIMIZED, OURS))
        table.add_row(result.name, *times, _ratio(result, "unoptimized"))
    return table


def compilations_table(compilations: Sequence[Compilation]) -> Table:
    """Milliseconds of the compiler."""
    table = _table("compile, CPU ms", "first", "least of the others", "most", "wanted")
    for c in compilations:
        least = Text(_milli(c.least))
        if c.wanted is not None:
            least.stylize(ENOUGH if c.least <= c.wanted else SHORT)
        wanted = "" if c.wanted is None else f"≤ {_milli(c.wanted)}"
        table.add_row(c.name, _milli(c.first), least, _milli(c.most), wanted)
    return table


def figures_table(title: str, figures: Sequence[Figure]) -> Table:
    """Each figure beside its bound and the figures of others."""
    beside = list(dict.fromkeys(name for f in figures for name in f.beside))
    table = _table(title, "measured", "wanted", *beside, first="")
    for f in figures:
        value = Text(_short(f.value))
        if f.wanted is not None:
            value.stylize(SHORT if f.falls_short else ENOUGH)
        wanted = "" if f.wanted is None else f"≤ {_short(f.wanted)}"
        others = (_short(f.beside[name]) if name in f.beside else "" for name in beside)
        table.add_row(f.name, value, wanted, *others)
    return table


def remarks(results: Iterable[Result]) -> list[str]:
    """Remarks on the tables: systems that are left out, and ratios below their bounds."""
    texts: list[str] = []
    for result in results:
        where = f"{result.name}, {result.threads} threads" if result.threads > 1 else result.name
        texts += [f"{where}: {peer} is left out: {why}" for peer, why in result.left_out.items()]
        for unit, ratio in result.short.items():
            texts.append(f"{where}: {_NAMES[unit]}: {ratio:.2f}, wanted {result.wanted[unit]:.2f}")
    return texts


_NAMES: dict[Ratio, str] = {
    "peer": "best peer / ours",
    "limit": "share of the machine's limit",
    "unoptimized": "as written / optimized",
    "two threads": "one thread / two",
    "contended": "one thread / two, with a core taken away",
    "peer on two threads": "best peer / ours, both on two threads",
}


def _table(title: str, *columns: str, first: str = "workload") -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _peers(results: Sequence[Result]) -> list[str]:
    """The peers with a time in any result, in order."""
    own = (OURS, ONE_THREAD, UNOPTIMIZED)
    return list(dict.fromkeys(s for r in results for s in r.seconds if s not in own))


def _ratio(result: Result, unit: Ratio) -> Text:
    """The ratio and its bound."""
    ratio, wanted = result.ratios.get(unit), result.wanted.get(unit)
    if ratio is None:
        return Text("")
    if wanted is None:
        return Text(f"{ratio:.2f}")
    style = SHORT if unit in result.short else ENOUGH
    return Text.assemble((f"{ratio:.2f}", style), f" ≥ {wanted:.2f}")


def _limit(result: Result) -> str:
    if not result.rates:
        return ""
    name, rate = max(result.rates.items(), key=lambda item: item[1])
    return f"{name} {rate / 1e9:.0f} {'GFLOP/s' if result.limit == 'arithmetic' else 'GB/s'}"


def _micro(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f}"


def _short(number: float) -> str:
    """Three significant digits, or all digits before the point."""
    return f"{number:,.{max(0, 2 - max(0, math.floor(math.log10(max(number, 1)))))}f}"


def _milli(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"
