"""``relax-egraph optimize``: optimizes a model and saves the result."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

import relax_egraph as rx
from relax_egraph.base.progress import step
from relax_egraph.cli import options
from relax_egraph.cli.group import commands
from relax_egraph.cli.model import EXECUTABLE, ONNX, ModelFile

if TYPE_CHECKING:
    from relax_egraph.optimize.explanation import Explanation

TEXTS = ("", ".py", ".relax", ".txt")
"""File name suffixes of programs in script form."""


@commands.command()
@options.model
@options.output("Save the executable (.rxe), or the text of the program, to FILE.", required=True)
@options.optimization
@click.option("--report", is_flag=True, help="Print the rules that fired and why it stopped.")
@options.as_json
def optimize(
    model: ModelFile, output: Path, how: Mapping[str, Any], report: bool, as_json: bool
) -> None:
    """Optimize MODEL and save it.

    An output .rxe is an executable for run, bench and profile; an output .py, .relax, .txt or
    without a suffix is the optimized program in script form, with its constants in an .npz file
    beside it.
    """
    if output.suffix == ONNX:
        raise click.UsageError(f"{output}: cannot write ONNX models; use .rxe, or .py for text")
    if output.suffix not in (EXECUTABLE, *TEXTS):
        suffixes = "use .rxe for an executable, or .py for the program as text"
        raise click.UsageError(f"{output}: unknown suffix: {suffixes}")
    explanation = model.optimized(how)
    if output.suffix == EXECUTABLE:
        with step("building"):
            rx.build(explanation.module, portable=True).save(output)
    else:
        rx.save_module(explanation.module, output)
    from relax_egraph.reasons.accuracy import approximations

    kernels = approximations(explanation.module)
    if as_json:
        fields = {"file": str(model), "output": str(output), **explanation.as_dict()}
        click.echo(json.dumps({**fields, "approximations": [asdict(kernel) for kernel in kernels]}))
        return
    if report:
        table = explanation.table()
        for kernel in kernels:
            table.add_row(kernel.kernel, str(kernel))
        Console().print(table)
    click.echo(f"{output}: {_summary(explanation)}")


def _summary(explanation: "Explanation") -> str:
    from relax_egraph.optimize.sizes import at_assumed

    before, after = (
        f"{seconds * 1e6:.2f} µs" for seconds in (explanation.cost_before, explanation.cost)
    )
    rules = "1 rule" if len(explanation.rules) == 1 else f"{len(explanation.rules)} rules"
    estimate = f"estimated {before} → {after}{at_assumed(explanation.assumed)}"
    return f"{rules} fired, {estimate}, at most {explanation.gap:.2%} above the best"
