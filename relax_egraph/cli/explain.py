"""``relax-egraph explain``: why the best program for a model is what it is."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from relax_egraph.cli import options, values
from relax_egraph.cli.group import Unusable, commands
from relax_egraph.cli.model import How, ModelFile, warn_of_assumed
from relax_egraph.cli.progress import step
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.reasons.explain import Reasons, explain
from relax_egraph.reasons.no_block import NO_BLOCK
from relax_egraph.reasons.text import text_of


@commands.command("explain")
@options.model
@options.optimization
@click.option(
    "--html", type=values.output, metavar="FILE", help="Write a page, complete in itself."
)
@click.option("--proof", is_flag=True, help="Print every step from the program to its result.")
@click.option("--quick", is_flag=True, help="Leave out what each rule gains: a run without it.")
@options.as_json
def print_reasons(
    model: ModelFile, how: How, html: Path | None, proof: bool, quick: bool, as_json: bool
) -> None:
    """Say why the best program for MODEL is what it is.

    For each kernel: what it stands for in the program, and the rules that made it. For each rule:
    its matches, the nodes that it made, its time, and what is lost without it. Why each phase
    ended, what the program costs, and how far that is from the best.
    """
    module = model.module()
    with step("optimizing") as tell:
        reasons = _reasons(module, how)
        if not reasons.regions:
            raise Unusable(NO_BLOCK)
        figures = _figures(reasons, proof, quick, tell)
    warn_of_assumed(reasons.assumed)
    if html is not None:
        from relax_egraph.reasons.page.render import page_of  # jinja2 takes a while

        html.write_text(page_of(figures, str(model)), "utf-8")
    if as_json:
        traces = {"proof": reasons.proof_data()} if proof else {}
        click.echo(json.dumps({"file": str(model), **figures, **traces}))
    elif html is not None:
        click.echo(f"{html}: {len(figures['kernels'])} kernels, {len(figures['rules'])} rules")
    else:
        Console().print(text_of(figures))
    if proof and not as_json:
        click.echo(reasons.proof_text())


def _reasons(module: Any, how: How) -> Reasons:
    try:
        return explain(module, **how)
    except RelaxEgraphError:
        raise
    except ValueError as error:
        raise Unusable(str(error)) from None


def _figures(
    reasons: Reasons, proof: bool, quick: bool, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The figures, with what takes long said while it is done; only a `proof` must be found."""
    tell("proving")
    with suppress(RelaxEgraphError):
        _ = reasons.proofs
        if not quick:
            reasons.gains_told(lambda number, _: tell(f"leaving out rules: try {number}"))
    if proof:
        _ = reasons.proofs
    return reasons.figures(quick=quick)
