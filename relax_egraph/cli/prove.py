"""``relax-egraph rules prove``: proves rules for all extents."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from relax_egraph.cli import options, values
from relax_egraph.cli.progress import counted
from relax_egraph.cli.rules import chosen_rules, rule_commands

if TYPE_CHECKING:
    from relax_egraph.egraph.rulebook.book import RuleBook
    from relax_egraph.prove.verdict import Verdict

STATUSES = ("proven", "refuted", "not proven", "not expressible")


@rule_commands.command("prove")
@click.argument("files", nargs=-1, type=values.EXISTING, metavar="[FILE.egg]...")
@click.option("--only", multiple=True, metavar="NAME", help="Prove only this rule.")
@click.option("--all", "whole", is_flag=True, help="Prove every rule of the book.")
@click.option("-q", "--quiet", is_flag=True, help="Print only rules that are not proven.")
@options.as_json
def prove_files(
    files: tuple[Path, ...], only: tuple[str, ...], whole: bool, quiet: bool, as_json: bool
) -> None:
    """Prove the rules in each FILE, or of the book, for all extents.

    A rule that is proven equates equal values over the real numbers, integers modulo their range
    and truth values, for operands of the ranks that are printed; its right side is well-typed
    wherever its left side is. How both sides round is checked by "rules check". A rule that is not
    proven, or not expressible, may be right: the missing step is printed. The exit status is 1 if a
    rule is refuted, by operands for which numpy computes a difference.
    """
    from relax_egraph.egraph.rulebook.book import RuleBook
    from relax_egraph.prove.user_rules import equating

    if not (files or only or whole):
        raise click.UsageError("needs FILE.egg, --only NAME, or --all for the whole book")
    book = RuleBook.default(files, fast_math=True, bounded=True)
    verdicts = proven(book, chosen_rules(book, equating(book), files, only, done="proven"))
    if as_json:
        click.echo(json.dumps([verdict.as_dict() for verdict in verdicts]))
    else:
        print_proofs(verdicts, quiet=quiet)
    if any(verdict.status == "refuted" for verdict in verdicts):
        sys.exit(1)


def proven(book: "RuleBook", names: Sequence[str]) -> "Sequence[Verdict]":
    """The proofs of those rules among `names` that equate values."""
    from relax_egraph.prove.user_rules import equating, prove_rules

    rules = [rule for rule in equating(book) if rule.name in set(names)]
    try:
        with counted("proving rules", len(rules)) as done:
            return prove_rules(book, rules, done)
    except ModuleNotFoundError as missing:
        raise click.ClickException(str(missing)) from None


def print_proofs(verdicts: "Sequence[Verdict]", *, quiet: bool) -> None:
    """A line for each verdict, and the number of each status."""
    for verdict in verdicts:
        if not (quiet and verdict.status == "proven"):
            click.echo(str(verdict))
    if quiet or len(verdicts) < 2:
        return
    count = Counter(verdict.status for verdict in verdicts)
    table = Table("status", "rules")
    table.columns[1].justify = "right"
    for status in STATUSES:
        if count[status]:
            table.add_row(status, str(count[status]))
    Console().print(table)
