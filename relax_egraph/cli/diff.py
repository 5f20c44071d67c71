"""``relax-egraph diff``: the first value of a program that differs from another system's."""

import json
from collections.abc import Mapping
from typing import Any

import click

from relax_egraph.cli import options
from relax_egraph.cli.arguments import arguments_in
from relax_egraph.cli.group import commands, usable
from relax_egraph.cli.model import TORCH, How, ModelFile


@commands.command("diff")
@options.model
@click.option(
    "--against",
    type=click.Choice(["torch"]),
    default="torch",
    show_default=True,
    help="The system that the program comes from.",
)
@options.archive
@options.inputs
@options.sizes
@options.tolerances
@options.optimization
@options.as_json
def print_difference(
    model: ModelFile,
    against: str,
    archive: Mapping[str, Any] | None,
    inputs: tuple[tuple[str, Any], ...],
    sizes: tuple[tuple[str, int], ...],
    tol: float | None,
    atol: float | None,
    how: How,
    as_json: bool,
) -> None:
    """Find the first value of MODEL that differs from torch.

    MODEL is a file of torch.export.save (.pt2), which torch runs value by value. If ours differs as
    imported, an operator was converted wrongly; if it differs only when optimized and built, the
    rules that make it wrong are found. Missing arguments are random, the same each time. The exit
    status is 1 if a value differs by more than --tol and --atol.
    """
    if model.path.suffix != TORCH:
        raise click.UsageError(f"{model}: --against {against} needs a program of torch ({TORCH})")
    values = (*(archive or {}).items(), *inputs)
    from relax_egraph.diff import compared  # and numpy, which help does not need

    probed = model.probed()
    arguments = arguments_in(probed.module, "main", values, sizes)
    found = usable(lambda: compared(probed, arguments.values, rtol=tol, atol=atol, **how))
    if as_json:
        click.echo(json.dumps({"file": str(model), "random": arguments.random, **found.as_dict()}))
    else:
        if arguments.random:
            click.echo(f"random: {', '.join(arguments.random)}", err=True)
        click.echo(str(found))
    raise SystemExit(int(found.differs))
