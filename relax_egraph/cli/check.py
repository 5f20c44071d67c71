"""``relax-egraph rules check``: whether rules are right."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from relax_egraph.cli import options, values
from relax_egraph.cli.failure_text import failure_text, suggested, text_of
from relax_egraph.cli.progress import counted
from relax_egraph.cli.rules import known_rule, rule_commands
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.cases import Case, cases_of
from relax_egraph.verify.check import INSTANCES, check_rules
from relax_egraph.verify.file_tests.cases import book_tests
from relax_egraph.verify.verdict import Verdict

KINDS = ("exact", "reassociates", "fast", "conditional", "unsound", "never fired")


@rule_commands.command("check")
@click.argument("files", nargs=-1, type=values.EXISTING, metavar="[FILE.egg]...")
@click.option("--only", multiple=True, metavar="NAME", help="Only this rule.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=INSTANCES,
    show_default=True,
    metavar="COUNT",
    help="Instances on which a rule has to match.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="NUMBER", help="What is drawn."
)
@options.processes
@click.option(
    "--tests",
    multiple=True,
    type=values.EXISTING,
    metavar="FILE",
    help="File tests whose programs are drawn from, for rules that need a setting.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print a line on each rule, too.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what is wrong.")
@options.as_json
def check_files(
    files: tuple[Path, ...],
    only: tuple[str, ...],
    trials: int,
    seed: int,
    processes: int,
    tests: tuple[Path, ...],
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Check the rules in each FILE, or all of the rule book, on random instances.

    What a rule matches is built from random shapes, dtypes, attributes and values; both sides are
    computed with numpy. It fails that needs a weaker float class than it declares, or that never
    matches: then the exit status is 1, as it is where there is no rule to check. The same seed
    gives the same verdicts.
    """
    if verbose and quiet:
        raise click.UsageError("--verbose and --quiet exclude each other")
    book = RuleBook.default(files, fast_math=True, bounded=True)
    names = _names(book, files, only)
    with counted("checking rules", len(names)) as done:
        how = {"trials": trials, "seed": seed, "processes": processes}
        verdicts = check_rules(book, names, _cases(tests), told=done, **how)
    wrong = [verdict for verdict in verdicts if not verdict.sound]
    if as_json:
        told = [v.as_dict() | {"suggested": suggested(v, text_of(book, v))} for v in verdicts]
        click.echo(json.dumps({"seed": seed, "trials": trials, "verdicts": told}))
    else:
        for verdict in verdicts if verbose else ():
            click.echo(str(verdict).partition("\n")[0])
        for verdict in wrong:
            click.echo(failure_text(book, verdict))
        if not quiet:
            _print_summary(verdicts)
    if wrong:
        sys.exit(1)


def _names(book: RuleBook, files: Sequence[Path], only: Sequence[str]) -> list[str]:
    """The rules that are asked for: those of `files` or of the book, or `only` some of them."""
    for file in files:
        if not any(rule.span.file == str(file) for rule in book.rules):
            raise click.ClickException(f"{file} has no rules: none was checked")
    of_files = [r.name for r in book.rewrites if not files or r.name in book.of_user]
    names = list(dict.fromkeys(known_rule(name, of_files) for name in only)) or of_files
    if not names:
        raise click.ClickException("no rule was checked: there is none to check")
    return names


def _cases(tests: Sequence[Path]) -> tuple[Case, ...]:
    """The programs of `tests`, and of those of the book."""
    return tuple(
        case
        for path in (*book_tests(), *tests)
        for case in cases_of(path.read_text("utf-8"), path.name)
    )


def _print_summary(verdicts: Sequence[Verdict]) -> None:
    """How many rules are of each kind, and how many of these declare less."""
    table = Table("kind", "rules", "weaker than declared")
    for column in table.columns[1:]:
        column.justify = "right"
    for kind in KINDS:
        some = [v for v in verdicts if v.kind == kind]
        if some:
            weaker = sum(not v.sound for v in some)
            table.add_row(kind, str(len(some)), str(weaker or ""))
    Console().print(table)
    wrong = sum(not v.sound for v in verdicts)
    proved = sum(v.proved for v in verdicts)
    rules = f"{len(verdicts)} rule{'s' * (len(verdicts) != 1)}"
    parts = [f"{rules}: {len(verdicts) - wrong} as declared, {wrong} not"]
    parts += [f"{proved} of proven shapes"] if proved else []
    click.echo("; ".join(parts))
