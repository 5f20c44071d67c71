"""``relax-egraph rules show``: one rule, its premises, and the file tests where it fires."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from relax_egraph.cli import options
from relax_egraph.cli.rules import known_rule, rule_commands, rule_fields

if TYPE_CHECKING:
    from relax_egraph.verify.description import Description


@rule_commands.command("show")
@click.argument("name")
@options.rules
@options.as_json
def show_rule(name: str, rules: tuple[Path, ...], as_json: bool) -> None:
    """Print the rule NAME, its premises, and its file tests."""
    from relax_egraph.egraph.rulebook.book import RuleBook
    from relax_egraph.verify.description import describe

    book = RuleBook.default(rules, fast_math=True, bounded=True)
    by_name = {rule.name: rule for rule in book.rules}
    rule = by_name[known_rule(name, by_name)]
    described, seen = describe(book, rule), list(_seen(rule.name))
    if as_json:
        relations = {relation: list(makers) for relation, makers in described.relations}
        report = {
            **rule_fields(book, rule),
            "text": described.text,
            "matches": described.matches,
            "makes": described.makes,
            "facts": described.facts,
            "relations": relations,
            "tests": seen,
        }
        click.echo(json.dumps(report))
        return
    click.echo(f"{click.style(rule.name, bold=True)}  {rule.span}\n")
    click.echo("".join(f"    {line}\n" for line in described.text.splitlines()))
    for head, lines in _rows(rule, described, seen):
        for k, line in enumerate(lines):
            click.echo(f"{head if k == 0 else '':<10}{line}")


def _rows(rule: Any, described: "Description", seen: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sections below the text of the rule: a heading and its lines."""
    yield "family", [rule.ruleset]
    yield "float", [rule.float_class]
    for head in ("matches", "makes", "facts"):
        if names := getattr(described, head):
            yield head, [", ".join(names)]
    if described.relations:
        relations = (f"{name}, deduced by {_few(rules)}" for name, rules in described.relations)
        yield "relations", list(relations)
    if seen:
        yield "seen in", seen


_MOST = 6


def _few(names: tuple[str, ...]) -> str:
    more = f", … {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def _seen(name: str) -> Iterator[str]:
    """Place and title of the file tests of the book in which the rule fires."""
    from relax_egraph.verify.file_tests.cases import book_tests, read_tests

    for path in book_tests():
        for test in read_tests(path):
            if name in (fired.rstrip("=><") for fired in test.fires):
                yield f"tests/rules/{path.name}:{test.line}: {test.title}"
