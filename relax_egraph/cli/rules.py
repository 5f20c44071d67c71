"""``relax-egraph rules``: the group of commands on rules; the vocabulary and the list of rules."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import SequenceMatcher
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from relax_egraph.cli import options
from relax_egraph.cli.editor_forms import FORMS
from relax_egraph.cli.group import Unusable, commands
from relax_egraph.errors import nearest

if TYPE_CHECKING:
    from relax_egraph.egraph.rulebook.book import RuleBook
    from relax_egraph.egraph.rulebook.rule import Rule


@commands.group("rules")
def rule_commands() -> None:
    """Print, check and test rules."""


@rule_commands.command("vocabulary")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.as_json
@click.option(
    "--editor",
    type=click.Choice(tuple(FORMS)),
    help="Print a file for editors: a grammar or syntax file, snippets, a word list.",
)
def print_vocabulary(names: tuple[str, ...], as_json: bool, editor: str | None) -> None:
    """Print the vocabulary of rules: each NAME, or all of it.

    A name has arguments with sorts, and a meaning.
    """
    if editor:
        if names or as_json:
            raise click.UsageError(
                "--editor prints the whole vocabulary: it excludes NAME and --json"
            )
        click.echo(FORMS[editor](), nl=False)
        return
    from relax_egraph.egraph.rulebook.scope import vocabulary

    every = {declaration.name: declaration for declaration in vocabulary()}
    chosen = [every[known_name("name", name, every)] for name in names] or list(every.values())
    if as_json:
        click.echo(json.dumps([asdict(declaration) for declaration in chosen]))
        return
    table = Table("name", "arguments", "result", "meaning")
    for d in chosen:
        arguments = " ".join(f"{p.name}:{p.sort}" for p in d.params)
        table.add_row(*map(escape, (d.name, arguments, d.result, d.meaning)))
    Console().print(table)


@rule_commands.command("list")
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="NAME",
    help="Only this family.",
)
@options.rules
@options.as_json
def print_rules(families: tuple[str, ...], rules: tuple[Path, ...], as_json: bool) -> None:
    """Print the rules of the book and of your rule files.

    Each rule has its family, law, float class and place; if the output is not a terminal, it is
    one line with tabs between the columns.
    """
    from relax_egraph.egraph.rulebook.book import RuleBook

    book = RuleBook.default(rules, fast_math=True, bounded=True)
    known = dict.fromkeys(rule.ruleset for rule in book.rules)
    chosen = {known_name("family", family, known) for family in families} or known
    selected = [rule for rule in book.rules if rule.ruleset in chosen]
    if as_json:
        click.echo(json.dumps([rule_fields(book, rule) for rule in selected]))
        return
    console = Console()
    rows = [(r.ruleset, r.name, r.law, r.float_class, str(r.span)) for r in selected]
    if not console.is_terminal:
        for family, name, law, float_class, place in rows:
            click.echo("\t".join((family, name, float_class, place, " ".join(law.split()))))
        return
    table = Table("family", "rule", "law", "float", "place")
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def rule_fields(book: "RuleBook", rule: Any) -> dict[str, Any]:
    """The fields of a rule of `book` in JSON output."""
    from relax_egraph.egraph.rulebook.forms import written

    fields = ("name", "ruleset", "kind", "law", "float_class")
    said = {f: getattr(rule, f) for f in fields} | {"form": written(rule.form)}
    place = {"place": str(rule.span), "file": rule.span.file, "line": rule.span.line}
    return said | place | {"of_user": rule.name in book.of_user}


def known_name(what: str, name: str, known: Iterable[str]) -> str:
    """`name`, if it is one of `known`; raises `Unusable`, which suggests the nearest name."""
    if name in (names := list(known)):
        return name
    near = [n for n in names if n.endswith(f".{name}")]
    note = f"did you mean {near[0]}?" if near else nearest(name, names)
    problem = f"there is no {what} {name!r}", note
    raise Unusable("; ".join(filter(None, problem)))


def chosen_rules(
    book: "RuleBook",
    rules: "Sequence[Rule]",
    files: Sequence[Path],
    only: Sequence[str],
    *,
    done: str,
) -> list[str]:
    """The names of those of `rules` that are in `files`, or of all, or `only` some of these.

    A file without rules, of which none was `done`, is refused.
    """
    for file in files:
        if not any(rule.span.file == str(file) for rule in book.rules):
            raise click.ClickException(f"{file} has no rules: none was {done}")
    known = [rule.name for rule in rules if not files or rule.name in book.of_user]
    return list(dict.fromkeys(known_rule(name, known) for name in only)) or known


def known_rule(name: str, known: Iterable[str]) -> str:
    """`name`, if it is one of the rules `known`; raises `Unusable`, which lists similar names.

    Similar names share words with `name`, or letters.
    """
    if name in (names := list(known)):
        return name
    words = set(name.split("-"))

    def likeness(other: str) -> tuple[int, float]:
        return len(words & set(other.split("-"))), SequenceMatcher(None, name, other).ratio()

    similar = ", ".join(nlargest(3, names, key=likeness))
    raise Unusable(f"there is no rule {name!r}; similar: {similar}")
