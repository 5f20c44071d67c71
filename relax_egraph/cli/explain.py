"""``relax-egraph explain``: a report on how the best program of a model came about."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

import relax_egraph as rx
from relax_egraph.base.progress import step
from relax_egraph.cli import options, values
from relax_egraph.cli.group import Unusable, commands, usable
from relax_egraph.cli.model import How, ModelFile, warn_of_assumed
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.reasons.no_block import NO_BLOCK

if TYPE_CHECKING:
    from relax_egraph.reasons.explain import Reasons


@commands.command("explain")
@options.model
@options.optimization
@click.option("--html", type=values.output, metavar="FILE", help="Write a self-contained page.")
@click.option("--proof", is_flag=True, help="Print every step of the proof of the result.")
@click.option("--quick", is_flag=True, help="Skip the gains of rules, which need more runs.")
@options.as_json
def print_reasons(
    model: ModelFile, how: How, html: Path | None, proof: bool, quick: bool, as_json: bool
) -> None:
    """Explain how the best program for MODEL came about.

    For each kernel: the part of the program that it computes, and the rules behind it. For each
    rule: its matches, the nodes that it added, its time, and the loss without it. Also: why each
    phase stopped, the cost of the program, and its distance from the optimum.
    """
    module = model.module()
    with step("optimizing") as tell:
        reasons = usable(lambda: rx.explain(module, **how))
        if not reasons.regions:
            raise Unusable(NO_BLOCK)
        figures = _figures(reasons, proof, quick, tell)
    warn_of_assumed(reasons.assumed)
    if html is not None:
        from relax_egraph.reasons.page.render import page_of  # jinja2 loads slowly

        html.write_text(page_of(figures, str(model)), "utf-8")
    if as_json:
        traces = {"proof": reasons.proof_data()} if proof else {}
        click.echo(json.dumps({"file": str(model), **figures, **traces}))
    elif html is not None:
        click.echo(f"{html}: {len(figures['kernels'])} kernels, {len(figures['rules'])} rules")
    else:
        from relax_egraph.reasons.text import text_of

        Console().print(text_of(figures))
    if proof and not as_json:
        click.echo(reasons.proof_text())


def _figures(
    reasons: "Reasons", proof: bool, quick: bool, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The figures of the report, with progress on the terminal; only `proof` requires a proof."""
    tell("proving")
    with suppress(RelaxEgraphError):
        _ = reasons.proofs
        if not quick:
            reasons.compute_gains(lambda number, _: tell(f"leaving out rules: try {number}"))
    if proof:
        _ = reasons.proofs
    return reasons.figures(quick=quick)
