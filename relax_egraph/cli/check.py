"""``relax-egraph rules check``: tests rules for soundness."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from relax_egraph.base.progress import counted
from relax_egraph.cli import options, values
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import until_interrupted, usable
from relax_egraph.cli.modules import import_modules
from relax_egraph.cli.prove import print_proofs, proven
from relax_egraph.cli.rules import chosen_rules, rule_commands
from relax_egraph.verify import INSTANCES

if TYPE_CHECKING:
    from relax_egraph.verify.cases import Case
    from relax_egraph.verify.verdict import Verdict

KINDS = ("exact", "reassociates", "fast", "conditional", "unsound", "never fired", "not checked")


@rule_commands.command("check")
@click.argument("files", nargs=-1, type=values.EXISTING, metavar="[FILE.egg]...")
@click.option("--only", multiple=True, metavar="NAME", help="Check only this rule.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=INSTANCES,
    show_default=True,
    metavar="COUNT",
    help="Number of instances on which a rule has to match.",
)
@options.seeds
@options.processes
@options.tasks
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A Python module to import first: it registers functions that rules call.",
)
@click.option(
    "--tests",
    multiple=True,
    type=values.EXISTING,
    metavar="FILE",
    help="File tests with programs for rules that match only in a larger program.",
)
@click.option("--prove", is_flag=True, help="Also prove the rules, for all extents.")
@click.option("-v", "--verbose", is_flag=True, help="Also print a line for each rule.")
@click.option("-q", "--quiet", is_flag=True, help="Print only failures.")
@options.as_json
def check_files(
    files: tuple[Path, ...],
    only: tuple[str, ...],
    trials: int,
    seeds: range,
    processes: int,
    ray_address: str | None,
    journal: Path | None,
    modules: tuple[str, ...],
    tests: tuple[Path, ...],
    prove: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Check the rules in each FILE, or of the book, on random instances.

    Instances of a rule have random shapes, dtypes, attributes and values; both sides are computed
    with numpy. A rule fails if it needs a weaker float class than it declares, or never matches.
    The exit status is 1 if a rule fails, or if there is no rule to check. The same seed gives the
    same verdicts, however many processes or machines there are.

    With several seeds, the verdict on a rule is the weakest one. A check that was killed goes on
    from its --journal, also elsewhere: in this process or on a cluster. The proofs of --prove are
    made where the rules are checked, and are in the same journal.
    """
    if verbose and quiet:
        raise click.UsageError("--verbose and --quiet exclude each other")
    import_modules(modules)
    from relax_egraph.cli.failure_text import failure_text, suggested, text_of
    from relax_egraph.egraph.rulebook.book import RuleBook
    from relax_egraph.verify.check import Check, check_seeds
    from relax_egraph.verify.verdict import weakest

    book = RuleBook.default(files, fast_math=True, bounded=True)
    names = chosen_rules(book, book.checked, files, only, done="checked")
    if not names:
        raise click.ClickException("no rule was checked: there is none to check")
    count = len(seeds)
    kept = journal_in(journal)
    with executor_of(ray_address, processes) as executor:
        check = Check(book, names, _cases(tests), trials, executor, kept)
        with counted("checking rules", len(names) * count) as done:
            checked = until_interrupted(lambda: usable(lambda: check_seeds(check, seeds, done)))
        wanted = prove and not checked.interrupted
        proofs = proven(book, names, executor, kept) if wanted else ()
    by_seed = checked.value
    verdicts = weakest(by_seed.values())
    wrong = [verdict for verdict in verdicts if not verdict.sound]
    if as_json:
        reports = [v.as_dict() | {"suggested": suggested(v, text_of(book, v))} for v in verdicts]
        report: dict[str, Any] = {"seed": seeds[0], "trials": trials, "verdicts": reports}
        if count > 1:
            report["seeds"] = [
                {"seed": number, "verdicts": [v.as_dict() for v in of_seed]}
                for number, of_seed in by_seed.items()
            ]
        if prove:
            report["proofs"] = [proof.as_dict() for proof in proofs]
        click.echo(json.dumps(report))
    else:
        for verdict in verdicts if verbose else ():
            click.echo(str(verdict).partition("\n")[0])
        for verdict in wrong:
            click.echo(failure_text(book, verdict))
        if not quiet:
            _print_summary(verdicts, count)
        print_proofs(proofs, quiet=quiet)
    checked.end()
    if wrong or any(proof.status == "refuted" for proof in proofs):
        sys.exit(1)


def _cases(tests: Sequence[Path]) -> "tuple[Case, ...]":
    """The programs of the file tests `tests`, and of the file tests of the book."""
    from relax_egraph.verify.cases import cases_of
    from relax_egraph.verify.file_tests.cases import book_tests

    return tuple(
        case
        for path in (*book_tests(), *tests)
        for case in cases_of(path.read_text("utf-8"), path.name)
    )


def _print_summary(verdicts: "Sequence[Verdict]", seeds: int) -> None:
    """A table of the number of rules of each kind, and of those that declare a stronger class."""
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
    parts += [f"the weakest verdicts of {seeds} seeds"] if seeds > 1 else []
    click.echo("; ".join(parts))
