"""``relax-egraph rules``: what rules can say, and which there are."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import relax_egraph as rx
from relax_egraph.cli import options
from relax_egraph.cli.group import commands


@commands.group("rules")
def rule_commands() -> None:
    """What rules can say, and which there are."""


@rule_commands.command("vocabulary")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.as_json
def print_vocabulary(names: tuple[str, ...], as_json: bool) -> None:
    """Print what rules can use: each NAME, or all.

    A name has arguments of sorts, and a meaning.
    """
    every = {declaration.name: declaration for declaration in rx.vocabulary()}
    chosen = [every[_known(name, every, "NAME")] for name in names] or list(every.values())
    if as_json:
        click.echo(json.dumps([asdict(declaration) for declaration in chosen]))
        return
    table = Table("name", "arguments", "result", "meaning")
    for d in chosen:
        arguments = " ".join(f"{p.name}:{p.sort}" for p in d.params)
        table.add_row(*map(escape, (d.name, arguments, d.result, d.meaning)))
    Console().print(table)


@rule_commands.command("list")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only of this family.")
@options.rules
@options.as_json
def print_rules(families: tuple[str, ...], rules: tuple[Path, ...], as_json: bool) -> None:
    """Print the rules, of the book and your own.

    Of each its family, its law, what it does to rounding, and its place.
    """
    book = rx.RuleBook.default(rules, fast_math=True, bounded=True)
    known = dict.fromkeys(rule.ruleset for rule in book.rules)
    chosen = {_known(family, known, "--family") for family in families} or known
    found = [rule for rule in book.rules if rule.ruleset in chosen]
    if as_json:
        fields = ("name", "ruleset", "law", "float_class", "form")
        told = [{**{f: getattr(r, f) for f in fields}, "place": str(r.span)} for r in found]
        click.echo(json.dumps(told))
        return
    table = Table("family", "rule", "law", "float", "place")
    for r in found:
        table.add_row(*map(escape, (r.ruleset, r.name, r.law, r.float_class, str(r.span))))
    Console().print(table)


def _known(name: str, known: Iterable[str], hint: str) -> str:
    if name in (names := list(known)):
        return name
    near = [n for n in names if n.endswith(f".{name}")] or get_close_matches(name, names, n=1)
    note = f"; did you mean {near[0]}?" if near else ""
    raise click.BadParameter(f"there is no {name!r}{note}", param_hint=hint)
