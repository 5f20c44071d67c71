"""``relax-egraph profile``: where the time of a function goes."""

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
    help="Runs, of which the shortest counts.",
)
@options.machine
@click.option("--trace", type=output, metavar="FILE", help="Save a Chrome trace there.")
@options.as_json
def profile(
    model: ModelFile,
    inputs: tuple[tuple[str, Any], ...],
    sizes: tuple[tuple[str, int], ...],
    function: str,
    threads: int | None,
    repeat: int,
    machine: rx.Profile | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Run MODEL in the interpreter and time each kernel.

    Arguments that are not given are random, the same each time, of the sizes that --size says. The
    price of a fused kernel is the time that the optimizer expects, at the sizes that it assumed.
    With --machine each kernel is compared with what that machine needs at least.
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
