"""``relax-egraph rules show``: one rule, what it needs, and where it is seen to fire."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from relax_egraph.cli import options
from relax_egraph.cli.rules import known_rule, rule_commands, rule_fields
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.description import Description, describe
from relax_egraph.verify.file_tests.cases import book_tests, read_tests


@rule_commands.command("show")
@click.argument("name")
@options.rules
@options.as_json
def show_rule(name: str, rules: tuple[Path, ...], as_json: bool) -> None:
    """Print the rule NAME, what it needs, and which file tests see it fire."""
    book = RuleBook.default(rules, fast_math=True, bounded=True)
    by_name = {rule.name: rule for rule in book.rules}
    rule = by_name[known_rule(name, by_name)]
    described, seen = describe(book, rule), list(_seen(rule.name))
    if as_json:
        relations = {relation: list(makers) for relation, makers in described.relations}
        told = {
            **rule_fields(book, rule),
            "text": described.text,
            "matches": described.matches,
            "makes": described.makes,
            "facts": described.facts,
            "relations": relations,
            "tests": seen,
        }
        click.echo(json.dumps(told))
        return
    click.echo(f"{click.style(rule.name, bold=True)}  {rule.span}\n")
    click.echo("".join(f"    {line}\n" for line in described.text.splitlines()))
    for head, lines in _rows(rule, described, seen):
        for k, line in enumerate(lines):
            click.echo(f"{head if k == 0 else '':<10}{line}")


def _rows(rule: Any, described: Description, seen: list[str]) -> Iterator[tuple[str, list[str]]]:
    """What is said of the rule below its text: a heading and lines each."""
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
    """The file tests of the book that see the rule fire: place and title of each."""
    for path in book_tests():
        for test in read_tests(path):
            if name in (fired.rstrip("=><") for fired in test.fires):
                yield f"tests/rules/{path.name}:{test.line}: {test.title}"
