"""``relax-egraph profile``: where the time of a function goes."""

import json
from pathlib import Path

import click
from rich.console import Console

from relax_egraph.cli.group import EXISTING, commands
from relax_egraph.cli.random_inputs import random_input
from relax_egraph.cli.reading import array_of, machine_running, profile_of, size_of


@commands.command()
@click.argument("file", type=EXISTING)
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="An argument.")
@click.option(
    "--size", "sizes", multiple=True, metavar="NAME=SIZE", help="Of symbols, for random arguments."
)
@click.option("--function", default="main", show_default=True)
@click.option("--repeat", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--machine", metavar="FILE|calibrated", help="Compare with this machine, as calibrate saves it."
)
@click.option("--trace", type=click.Path(path_type=Path), help="Save a Chrome trace there.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def profile(
    file: Path,
    inputs: tuple[str, ...],
    sizes: tuple[str, ...],
    function: str,
    repeat: int,
    machine: str | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Run a function of FILE and print what each kernel took.

    Arguments that are not given are random.
    """
    given = dict(map(array_of, inputs))
    known = dict(size_of(text, "--size") for text in sizes)
    vm = machine_running(file, function)
    taken = vm.executable[function]
    for name in given.keys() - taken.params:
        message = f"{function} has no parameter {name}; it has {', '.join(taken.params)}"
        raise click.BadParameter(message, param_hint="--input")
    arguments = [
        given[name] if name in given else random_input(name, info, known)
        for name, info in zip(taken.params, taken.param_info, strict=True)
    ]
    limits = None if machine is None else profile_of(machine)
    report = vm.profile(function, *arguments, repeat=repeat, machine=limits)
    if trace is not None:
        report.save_trace(trace)
    if as_json:
        click.echo(json.dumps({"file": str(file), **report.as_dict()}))
    else:
        console = Console()
        console.print(report.table() if console.is_terminal else str(report), soft_wrap=True)
