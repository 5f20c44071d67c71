"""``relax-egraph rules prove``: proves rules for all extents."""

import json
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from relax_egraph.base.interruption import collected
from relax_egraph.base.progress import counted
from relax_egraph.cli import options, values
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import until_interrupted, usable
from relax_egraph.cli.rules import chosen_rules, rule_commands
from relax_egraph.workers.executor import ExecutorOf

if TYPE_CHECKING:
    from relax_egraph.base.journal import Journal
    from relax_egraph.egraph.rulebook.book import RuleBook
    from relax_egraph.egraph.rulebook.rule import Rule
    from relax_egraph.prove.certificate import Certificate
    from relax_egraph.prove.premises import Premise
    from relax_egraph.prove.rechecking import Recheck
    from relax_egraph.prove.verdict import Verdict

STATUSES = ("proven", "refuted", "not proven", "not expressible")


@rule_commands.command("prove")
@click.argument("files", nargs=-1, type=values.EXISTING, metavar="[FILE.egg]...")
@click.option("--only", multiple=True, metavar="NAME", help="Prove only this rule.")
@click.option("--all", "whole", is_flag=True, help="Prove every rule of the book.")
@click.option("--recheck", is_flag=True, help="Ask z3, and cvc5 if it is installed, once more.")
@click.option("--premises", is_flag=True, help="Say which premises proven rules need.")
@click.option("--suggest", is_flag=True, help="Print a diff without premises that are not needed.")
@click.option("-q", "--quiet", is_flag=True, help="Print only rules that are not proven.")
@options.tasks
@options.as_json
def prove_files(
    files: tuple[Path, ...],
    only: tuple[str, ...],
    whole: bool,
    recheck: bool,
    premises: bool,
    suggest: bool,
    quiet: bool,
    ray_address: str | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Prove the rules in each FILE, or of the book, for all extents.

    A rule that is proven equates equal values over the real numbers, integers modulo their range
    and truth values, for operands of the ranks that are printed; its right side is well-typed
    wherever its left side is. How both sides round is checked by "rules check". A rule that is not
    proven, or not expressible, may be right: the missing step is printed. The exit status is 1 if a
    rule is refuted, by operands for which numpy computes a difference.

    Proofs are kept in the cache with the questions that the solver answered, and made again when
    the rule, or what it rests on, changes. --recheck asks these questions again, of cvc5 too.

    --premises leaves out each premise of a proven rule in turn, or loosens a comparison in it: a
    premise is needed if numpy refutes the rule without it, not needed if that is proven.

    With --ray each rule is a task on the cluster. Proofs that were stopped go on from their
    --journal, also elsewhere.
    """
    from relax_egraph.egraph.rulebook.book import RuleBook
    from relax_egraph.prove.user_rules import equating

    if not (files or only or whole):
        raise click.UsageError("needs FILE.egg, --only NAME, or --all for the whole book")
    book = RuleBook.default(files, fast_math=True, bounded=True)
    names = chosen_rules(book, equating(book), files, only, done="proven")
    kept = journal_in(journal)
    with executor_of(ray_address) as executor:
        proved = until_interrupted(lambda: certificates(book, names, executor, kept))
    order = {name: number for number, name in enumerate(names)}
    made = sorted(proved.value, key=lambda certificate: order[certificate.verdict.rule.name])
    verdicts = [certificate.verdict for certificate in made]
    asked = NOTHING
    if not proved.interrupted:
        asked = Asked(
            rechecked(made) if recheck else {},
            needed(book, verdicts) if premises or suggest else {},
        )
    if as_json:
        click.echo(json.dumps([v.as_dict() | asked.fields(v.rule) for v in verdicts]))
    elif suggest:
        from relax_egraph.prove.suggestion import suggestion

        click.echo(suggestion(asked.premises, book), nl=False)
    else:
        print_proofs(verdicts, asked, quiet=quiet)
    proved.end()
    denied = any(not r.holds for r in asked.rechecks.values())
    if denied or any(verdict.status == "refuted" for verdict in verdicts):
        sys.exit(1)


def proven(
    book: "RuleBook",
    names: Sequence[str],
    executor: ExecutorOf | None,
    journal: "Journal | None",
) -> "Sequence[Verdict]":
    """The proofs of those rules among `names` that equate values, in the order of `names`."""
    order = {name: number for number, name in enumerate(names)}
    made = certificates(book, names, executor, journal)
    return sorted((one.verdict for one in made), key=lambda verdict: order[verdict.rule.name])


def certificates(
    book: "RuleBook",
    names: Sequence[str],
    executor: ExecutorOf | None = None,
    journal: "Journal | None" = None,
) -> "Sequence[Certificate]":
    """The certificates of those rules among `names` that equate values, as they are made."""
    from relax_egraph.prove.user_rules import certificates, equating

    rules = [rule for rule in equating(book) if rule.name in set(names)]
    try:
        with counted("proving rules", len(rules)) as done:
            every = certificates(book, rules, done, executor, journal)
            return usable(lambda: collected(every, len(rules), "rules were tried"))
    except ModuleNotFoundError as missing:
        raise click.ClickException(str(missing)) from None


def rechecked(made: "Sequence[Certificate]") -> "Mapping[Rule, Recheck]":
    """What the solvers say once more of the proofs among certificates."""
    from relax_egraph.prove.rechecking import recheck

    proofs = [c for c in made if c.verdict.status == "proven"]
    found: dict[Rule, Recheck] = {}
    with counted("checking proofs", len(proofs)) as done:
        for certificate in proofs:
            found[certificate.verdict.rule] = recheck(certificate)
            done(certificate)
    return found


def needed(book: "RuleBook", verdicts: "Sequence[Verdict]") -> "Mapping[Rule, tuple[Premise, ...]]":
    """What the proven rules among `verdicts` need of their premises."""
    from relax_egraph.prove.premises import premises_needed

    rules = [v.rule for v in verdicts if v.status == "proven"]
    found: dict[Rule, tuple[Premise, ...]] = {}
    with counted("leaving out premises", len(rules)) as done:
        for rule in rules:
            found[rule] = premises_needed(rule, book)
            done(rule)
    return found


@dataclass(frozen=True)
class Asked:
    """What was asked for beside verdicts: by rule, other solvers' answers, and its premises."""

    rechecks: "Mapping[Rule, Recheck]" = field(default_factory=dict[Any, Any])
    premises: "Mapping[Rule, tuple[Premise, ...]]" = field(default_factory=dict[Any, Any])

    def fields(self, rule: "Rule") -> dict[str, Any]:
        """The fields for JSON output."""
        found: dict[str, Any] = {}
        if rule in self.rechecks:
            found["recheck"] = self.rechecks[rule].as_dict()
        if rule in self.premises:
            found["premises"] = [premise.as_dict() for premise in self.premises[rule]]
        return found

    def lines(self, rule: "Rule") -> list[str]:
        """The lines for the terminal."""
        found = (self.rechecks.get(rule), *self.premises.get(rule, ()))
        return [f"  {each}" for each in found if each is not None]


NOTHING = Asked()


def print_proofs(verdicts: "Sequence[Verdict]", asked: Asked = NOTHING, *, quiet: bool) -> None:
    """A line for each verdict, with what was asked for; and the number of each status."""
    for verdict in verdicts:
        if not (quiet and verdict.status == "proven"):
            click.echo("\n".join((str(verdict), *asked.lines(verdict.rule))))
    if quiet or len(verdicts) < 2:
        return
    count = Counter(verdict.status for verdict in verdicts)
    table = Table("status", "rules")
    table.columns[1].justify = "right"
    for status in STATUSES:
        if count[status]:
            table.add_row(status, str(count[status]))
    Console().print(table)
    if asked.rechecks:
        Console().print(_table_of(asked.rechecks.values()))


def _table_of(rechecks: "Collection[Recheck]") -> Table:
    """How many questions of all proofs each solver confirms."""
    table = Table("solver", "questions", "confirmed", "denied", "open")
    total = sum(r.questions for r in rechecks)
    for solver in dict.fromkeys(name for r in rechecks for name in r.impossible):
        confirmed = sum(r.impossible[solver] for r in rechecks)
        denied = sum(r.possible[solver] for r in rechecks)
        counts = (total, confirmed, denied, total - confirmed - denied)
        table.add_row(solver, *map(str, counts))
    for column in table.columns[1:]:
        column.justify = "right"
    return table
