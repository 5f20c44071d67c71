"""``relax-egraph profile``: the time of each kernel of a function."""

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import relax_egraph as rx
from relax_egraph.cli import options
from relax_egraph.cli.calling import machine_for
from relax_egraph.cli.group import commands
from relax_egraph.cli.model import ModelFile
from relax_egraph.cli.values import output


@commands.command()
@options.model
@options.inputs
@options.sizes
@options.function
@options.threads
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="COUNT",
    default=10,
    show_default=True,
    help="Number of runs; the shortest counts.",
)
@options.machine
@click.option("--trace", type=output, metavar="FILE", help="Save a Chrome trace to FILE.")
@options.as_json
def profile(
    model: ModelFile,
    inputs: tuple[tuple[str, Any], ...],
    sizes: tuple[tuple[str, int], ...],
    function: str,
    threads: int | None,
    repeat: int,
    machine: "rx.Profile | None",
    trace: Path | None,
    as_json: bool,
) -> None:
    """Run MODEL in the interpreter and time each kernel.

    Missing arguments are random, the same each time, with the sizes from --size. The
    price of a fused kernel is the time that the optimizer expects, at the sizes that it assumed.
    With --machine, each kernel is compared with the least time that this machine needs.
    """
    vm, arguments = machine_for(model, function, inputs, sizes, threads)
    values = arguments.values.values()
    report = vm.profile(function, *values, repeat=repeat, machine=machine)
    if trace is not None:
        report.save_trace(trace)
    if as_json:
        click.echo(json.dumps({"file": str(model), **report.as_dict()}))
    else:
        console = Console()
        console.print(report.table() if console.is_terminal else str(report), soft_wrap=True)
