"""``relax-egraph extract``: the cheapest program of a serialized e-graph."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from relax_egraph.base.progress import step
from relax_egraph.cli import options
from relax_egraph.cli.group import commands
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.extract import METHODS, Method

if TYPE_CHECKING:
    from relax_egraph.extract import PlainExtraction, SerializedEGraph


@commands.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path), metavar="FILE|DIR")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="Time limit for each e-graph.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="ilp",
    show_default=True,
    help="An optimal method, or a fast heuristic.",
)
@options.as_json
@click.option("--json-lines", is_flag=True, help="Print one JSON object for each *.json of DIR.")
def extract(path: Path, time_limit: float, method: Method, as_json: bool, json_lines: bool) -> None:
    """Extract the cheapest program of an e-graph.

    FILE is an e-graph in the JSON format of egraph-serialize, DIR a folder of such files. The cost
    of a shared node counts once.
    """
    if as_json and json_lines:
        raise click.UsageError("--json and --json-lines exclude each other")
    if path.is_dir() and not json_lines:
        raise click.UsageError(f"{path} is a folder: needs --json-lines")
    if json_lines:
        _print_lines(path, method, time_limit)
        return
    from relax_egraph.extract import extract_egraph, read_egraph

    egraph = read_egraph(path)
    with step(f"extracting {path.name}"):
        extraction = extract_egraph(egraph, method=method, time_limit=time_limit)
    if as_json:
        click.echo(json.dumps({"file": str(path), **extraction.as_dict()}))
    else:
        _print_table(egraph, extraction)


def _print_lines(path: Path, method: Method, time_limit: float) -> None:
    """Print one JSON object for each file; a file that fails has its error, and status 1."""
    from relax_egraph.extract import extract_egraph

    failed = False
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        try:
            report = extract_egraph(file, method=method, time_limit=time_limit).as_dict()
        except (RelaxEgraphError, OSError) as error:
            report, failed = {"error": str(error)}, True
        click.echo(json.dumps({"file": str(file), **report}))
    if failed:
        sys.exit(1)


def _print_table(egraph: "SerializedEGraph", extraction: "PlainExtraction") -> None:
    table = Table("class", "node", "operator", "cost")
    for c, key in extraction.choice.items():
        node = egraph.nodes[key]
        cells = (_printable(text) for text in (c, key, node.op))
        table.add_row(*cells, f"{node.cost:g}")
    console = Console()
    console.print(table)
    console.print(
        f"cost {extraction.cost:.6g}, bound {extraction.bound:.6g}: {extraction.status}; "
        f"{len(extraction.choice)} of {extraction.classes} classes, {extraction.nodes} nodes, "
        f"{extraction.seconds:.2f} s",
        highlight=False,
    )


def _printable(text: str) -> str:
    """`text` without lone surrogates, which JSON strings may contain but terminals refuse."""
    return escape(text.encode("utf-8", "backslashreplace").decode("utf-8"))
