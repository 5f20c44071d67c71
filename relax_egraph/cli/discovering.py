"""``relax-egraph rules discover``: finds rules over chosen operators."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from relax_egraph import rules
from relax_egraph.base.progress import step
from relax_egraph.cli import options
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import until_interrupted, usable
from relax_egraph.cli.rules import known_name, rule_commands

if TYPE_CHECKING:
    from relax_egraph.discover.run import Discovery


@rule_commands.command("discover")
@click.option(
    "--ops",
    required=True,
    metavar="NAME,...",
    help="The operators of terms, such as R.add,R.multiply.",
)
@click.option(
    "--size",
    type=click.IntRange(1, 8),
    default=2,
    show_default=True,
    metavar="COUNT",
    help="The largest number of operators in a term.",
)
@click.option(
    "--number", "numbers", type=float, multiple=True, help="A number that terms may have."
)
@click.option(
    "--axis", "axes", type=int, multiple=True, help="An axis of matrices that terms may have."
)
@click.option("--without", multiple=True, metavar="FAMILY", help="A family of the book to ignore.")
@click.option("--no-book", is_flag=True, help="Ignore all families of the book.")
@click.option("--fast-math", is_flag=True, help="Also find rules of real numbers only.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit; what is found until then is kept.",
)
@click.option(
    "--terms",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    metavar="COUNT",
    help="The most terms, which bounds the memory.",
)
@options.tasks
@options.output("Write the rules here, and a file test beside it.")
@options.as_json
def discover_rules(
    ops: str,
    size: int,
    numbers: tuple[float, ...],
    axes: tuple[int, ...],
    without: tuple[str, ...],
    no_book: bool,
    fast_math: bool,
    seconds: float,
    terms: int,
    ray_address: str | None,
    journal: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find rules over the operators --ops that the rule book does not prove.

    Terms with equal values on shared random inputs are equations; those that follow from the book
    or from other rules are dropped, and the rest are checked as by rules check, and proven where
    that can be. The result is for review.

    With --ray, derivations, checks and proofs that may be needed next are tasks on the cluster; the
    result is the same as without. A search that was stopped goes on from its --journal, also
    elsewhere, and with larger limits.
    """
    from relax_egraph.discover.files import rules_text, write_rules
    from relax_egraph.discover.run import Search, discover

    left_out = {known_name("family", name, rules.FAMILIES) for name in without}
    families = () if no_book else tuple(f for f in rules.FAMILIES if f not in left_out)
    names = tuple(name.strip() for name in ops.split(",") if name.strip())
    how = Search(
        names,
        size,
        families,
        numbers=numbers,
        axes=axes,
        seconds=seconds,
        terms=terms,
        fast_math=fast_math,
    )
    kept = journal_in(journal)
    with executor_of(ray_address) as executor, step("searching") as progress:
        searched = until_interrupted(
            lambda: usable(lambda: discover(how, kept, progress, executor))
        )
    discovery = searched.value
    cases = write_rules(discovery, output) if output else None
    if as_json:
        click.echo(json.dumps(discovery.as_dict()))
    elif output:
        click.echo(f"wrote {output} and {cases}")
        _print_summary(discovery)
    elif Console().is_terminal:
        _print_table(discovery)
        _print_summary(discovery)
    else:
        click.echo(rules_text(discovery), nl=False)
    searched.end()


def _print_table(discovery: "Discovery") -> None:
    table = Table("rule", "float", "guard", "gain in µs")
    for found in discovery.found:
        status, gain = found.status, f"{found.candidate.gain * 1e6:.3g}"
        table.add_row(*map(escape, (str(found.candidate), status.float_class, status.guard, gain)))
    Console().print(table)


def _print_summary(discovery: "Discovery") -> None:
    terms = sum(layer["terms"] for layer in discovery.layers)
    refused = sum(not status.is_rule for _, status in discovery.refused) + discovery.variants
    text = f"{len(discovery.found)} rules of {terms} terms; {refused} equations refused"
    click.echo(text + f"; stopped by {discovery.stopped}" * bool(discovery.stopped))
