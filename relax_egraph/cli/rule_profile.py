"""``relax-egraph rules profile``: the time that each rule takes in the saturation of a model."""

import json
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from relax_egraph.base.progress import step
from relax_egraph.cli import options
from relax_egraph.cli.group import Unusable
from relax_egraph.cli.model import How, ModelFile
from relax_egraph.cli.rules import rule_commands


@rule_commands.command("profile")
@options.model
@options.optimization
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="COUNT",
    default=25,
    show_default=True,
    help="Number of rules in the table: the slowest.",
)
@options.as_json
def profile_rules(model: ModelFile, how: How, most: int, as_json: bool) -> None:
    """Time each rule in the saturation of MODEL.

    For each rule: the time of the search for its matches, the matches, and the iterations
    that searched it, because a table that it reads had new rows. Below: the seconds of saturation,
    which also applies matches and deduces facts, and of extraction.
    """
    from relax_egraph.reasons.no_block import NO_BLOCK
    from relax_egraph.reasons.rule_times import time_figures

    with step("optimizing") as tell:
        explanation = model.optimized(how)
        if not explanation.regions:
            raise Unusable(NO_BLOCK)
        tell("repeating the saturation")
        figures = time_figures(explanation)
    if as_json:
        click.echo(json.dumps({"file": str(model), **figures}))
        return
    Console().print(_table(figures["rules"], most))
    searched = sum(rule["seconds"] for rule in figures["rules"])
    spent = (searched, figures["saturation"], figures["extraction"])
    click.echo("search {:.3f} s, saturation {:.3f} s, extraction {:.3f} s".format(*spent))


def _table(rules: list[dict[str, Any]], most: int) -> Table:
    table = Table("rule", "family")
    for head in ("search, ms", "matches", "iterations"):
        table.add_column(head, justify="right")
    for rule in rules[:most]:
        numbers = f"{rule['seconds'] * 1e3:.2f}", str(rule["matches"]), str(rule["iterations"])
        table.add_row(escape(rule["rule"]), rule["family"], *numbers)
    if rest := rules[most:]:
        seconds = sum(rule["seconds"] for rule in rest)
        matches = str(sum(rule["matches"] for rule in rest))
        table.add_row(f"{len(rest)} more", "", f"{seconds * 1e3:.2f}", matches, "")
    return table
