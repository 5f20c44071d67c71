"""``relax-egraph rules test``: runs the file tests of rules."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from relax_egraph.base.progress import counted
from relax_egraph.cli import options
from relax_egraph.cli.group import Unusable, until_interrupted
from relax_egraph.cli.rules import rule_commands

if TYPE_CHECKING:
    from relax_egraph.egraph.rulebook.rule import Rule
    from relax_egraph.verify.file_tests.cases import FileTest, Outcome

_EXISTING: Any = click.Path(exists=True, path_type=Path)


_EXAMPLE = """\b
A case:
  ; RULES: my.egg
  ; The cosine is even.
  ; FIRES: cos-is-even
  (let $x (Leaf 0))
  (dtype-claim $x "float32")
  (shape-claim $x (vec-of (DimSym "n") (DimSym "4")))
  (let $y (R.cos (R.negative $x)))
  (run-schedule (saturate (seq (run facts) (run dim) (run my))))
  (check (= $y (R.cos $x)))

(Leaf 0) is an input, (Leaf 1) another; dtype-claim and shape-claim declare its type, and running
facts and dim deduces the types of terms over it. (run my) runs the rules of my.egg.
See rules/README.md for more.
"""


@rule_commands.command("test", epilog=_EXAMPLE)
@click.argument("paths", nargs=-1, required=True, type=_EXISTING, metavar="FILE|DIR...")
@options.rules
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for each case.",
)
@options.processes
@click.option("-v", "--verbose", is_flag=True, help="Also print cases that pass.")
@options.as_json
def test_rules(
    paths: tuple[Path, ...],
    rules: tuple[Path, ...],
    timeout: float,
    processes: int,
    verbose: bool,
    as_json: bool,
) -> None:
    """Run the file tests in each FILE, and in the files of each DIR.

    A file has cases between "; -----" lines. One line "; RULES: my.egg canon" names the rules under
    test: files beside it, and families of the book. "; FIRES: my-rule" names a rule that must
    match in the case; (check ...) and (fail (check ...)) state what must hold after it has run.
    Terms that became equal are computed and compared on random inputs.
    """
    from relax_egraph.reasons.why_not.in_case import with_premises
    from relax_egraph.verify.file_tests.cases import unseen
    from relax_egraph.verify.file_tests.pool import run_tests

    tests = [test for path in paths for test in _tests(path, rules)]
    with counted("running file tests", len(tests)) as done:
        run = partial(run_tests, tests, seconds=timeout, processes=processes, progress=done)
        ran = until_interrupted(run)
    outcomes = tuple(map(with_premises, ran.value))
    lacking = () if ran.interrupted else unseen(outcomes)
    if as_json:
        names = [{"name": rule.name, "place": str(rule.span)} for rule in lacking]
        report = {"tests": [o.as_dict() for o in outcomes], "rules_not_seen": names}
        click.echo(json.dumps(report))
    else:
        _print(outcomes, lacking, verbose)
    ran.end()
    if not all(outcome.passed for outcome in outcomes):
        sys.exit(1)


def _tests(path: Path, beside: Sequence[Path]) -> "list[FileTest]":
    """The tests of a file, or of all files with tests below a folder."""
    from relax_egraph.verify.file_tests.cases import read_tests

    files = sorted(path.rglob("*.egg")) if path.is_dir() else [path]
    all_tests = [test for file in files for test in read_tests(file, beside)]
    if not all_tests:
        lack = "no .egg file with a file test" if path.is_dir() else "no file test"
        raise Unusable(f"{path} has {lack}: a case with a (check ...) or a ; FIRES: line")
    return all_tests


def _print(outcomes: "Sequence[Outcome]", lacking: "Sequence[Rule]", verbose: bool) -> None:
    """Print the failures, the rules `lacking` that matched in no case, and a summary."""
    for outcome in outcomes:
        if not outcome.passed:
            click.echo(click.style("failed ", fg="red") * verbose + f"{outcome}\n")
        elif verbose:
            click.echo(f"{click.style('passed', fg='green')} {outcome}")
    for rule in lacking:
        click.echo(f"{rule.span}: rule {rule.name} matches in no case")
    failed = sum(not outcome.passed for outcome in outcomes)
    files = len({outcome.test.file for outcome in outcomes})
    done = f"{_count(len(outcomes), 'case')} in {_count(files, 'file')}"
    click.secho(f"{done}: {len(outcomes) - failed} passed, {failed} failed", bold=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
