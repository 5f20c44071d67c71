"""``relax-egraph bench``: the time of a model, compared with that of another system."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from relax_egraph.cli import options
from relax_egraph.cli.calling import machine_for
from relax_egraph.cli.group import commands
from relax_egraph.cli.model import ONNX, ModelFile
from relax_egraph.cli.peers import PEERS, Peer
from relax_egraph.cli.run import results_of
from relax_egraph.cli.timing import Times, in_turns

OURS = "relax-egraph"


@commands.command()
@options.model
@click.option(
    "--vs", type=click.Choice(tuple(PEERS)), help=f"Compare with this system ({ONNX} only)."
)
@options.inputs
@options.sizes
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    metavar="COUNT",
    default=1,
    show_default=True,
    help="Number of threads of each system.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    default=2.0,
    show_default=True,
    help="Duration of the measurement of each system.",
)
@click.option(
    "--within",
    type=click.FloatRange(min=0),
    metavar="SHARE",
    default=1e-4,
    show_default=True,
    help="Allowed difference of outputs, relative to the largest magnitude.",
)
@options.optimization
@options.as_json
def bench(
    model: ModelFile,
    vs: str | None,
    inputs: tuple[tuple[str, Any], ...],
    sizes: tuple[tuple[str, int], ...],
    threads: int,
    seconds: float,
    within: float,
    how: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Measure the time of the main function of MODEL.

    With --vs, the outputs are compared first (exit status 1 if they differ); then both systems
    run in turns, and the least time of each counts. Missing arguments are random.
    """
    if vs is not None and not model.is_onnx:
        raise click.UsageError(f"{model}: --vs {vs} needs an ONNX model ({ONNX})")
    peer = None if vs is None else PEERS[vs]()
    machine, arguments = machine_for(model, "main", inputs, sizes, threads, how)
    values = list(arguments.values.values())
    runs: dict[str, Callable[[], Any]] = {OURS: partial(machine["main"], *values)}
    error = None
    if peer is not None and vs is not None:
        runs[vs] = _session(peer, vs, model, threads, values)
        ours, theirs = results_of(runs[OURS]()), runs[vs]()
        error = _compared(ours, theirs, vs, within)
    times = in_turns(runs, seconds)
    shapes = {name: _described(value) for name, value in arguments.values.items()}
    if as_json:
        report = {"file": str(model), "threads": threads, "arguments": shapes, "error": error}
        seconds_by_system = {
            system: {"least": t.least, "median": t.median} for system, t in times.items()
        }
        click.echo(json.dumps({**report, "seconds": seconds_by_system}))
    else:
        _print(times, shapes, threads, error)


def _session(
    peer: Peer, vs: str, model: ModelFile, threads: int, values: Sequence[Any]
) -> Callable[[], Sequence[Any]]:
    try:
        return peer(model.path, threads, values)
    except Exception as failure:  # the peer has its own exceptions
        first, *_ = (*str(failure).splitlines(), "")
        message = f"{vs} does not run {model}: {type(failure).__name__}: {first}"
        raise click.ClickException(message) from None


def _compared(ours: Sequence[Any], theirs: Sequence[Any], vs: str, within: float) -> float:
    """The largest difference of outputs; fails with status 1 if it exceeds `within`."""
    import numpy as np

    if len(ours) != len(theirs):
        raise click.ClickException(f"{len(ours)} outputs, and {len(theirs)} of {vs}")
    worst = 0.0
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            types = f"{_described(a)}, and {_described(b)} of {vs}"
            raise click.ClickException(f"output {number} is {types}")
        error = difference(a, b)
        if not error <= within:
            problem = f"differs by {error:.1e} of the largest magnitude, allowed are {within:g}"
            raise click.ClickException(f"output {number} ({_described(a)}), beside {vs}: {problem}")
        worst = max(worst, error)
    return worst


def difference(a: Any, b: Any) -> float:
    """The largest difference relative to the largest finite magnitude, possibly infinite."""
    import numpy as np

    if a.dtype.kind not in "biufV" or a.size == 0:
        return 0.0 if np.array_equal(a, b) else float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    apart = np.abs(a[finite] - b[finite]).max(initial=0.0)
    return float(apart / (np.abs(b[finite]).max(initial=0.0) or 1.0))


def _described(value: Any) -> str:
    import numpy as np

    array = np.asarray(value)
    return f"{array.dtype.name}{list(array.shape)}"


def _print(
    times: Mapping[str, Times], shapes: Mapping[str, str], threads: int, error: float | None
) -> None:
    title = f"{threads} thread{'s' * (threads > 1)}; " + ", ".join(map(" ".join, shapes.items()))
    table = Table("system", "least", "median", title=title, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for system, measured in times.items():
        table.add_row(system, *(f"{t * 1e6:,.1f} µs" for t in (measured.least, measured.median)))
    console = Console()
    console.print(table)
    if error is not None:
        (ours, (vs, theirs)) = times[OURS], list(times.items())[1]
        share = f"{ours.least / theirs.least:.2f} of the time of {vs}"
        console.print(f"{share}; outputs differ by at most {error:.1e}", highlight=False)
