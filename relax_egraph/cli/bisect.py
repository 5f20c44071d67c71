"""``relax-egraph bisect``: which rules change a model's result, and which its cost."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import relax_egraph as rx
from relax_egraph.base.interruption import collected
from relax_egraph.cli import options
from relax_egraph.cli.arguments import arguments_in
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import commands, until_interrupted, usable
from relax_egraph.cli.model import How, ModelFile, rules_apart, warn_of_assumed

if TYPE_CHECKING:
    from relax_egraph.reasons.bisected import Bisected, Culprit
    from relax_egraph.reasons.gains import CostBisected


@commands.command("bisect")
@options.models
@options.archive
@options.inputs
@options.sizes
@options.function
@click.option(
    "--metric",
    type=click.Choice(["result", "cost"]),
    default="result",
    show_default=True,
    help="The property that rules change.",
)
@options.tolerances
@click.option(
    "--gain",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="With --metric cost: the share of the gain that rules must reach, by default 0.9.",
)
@options.optimization
@options.tasks
@options.as_json
def print_bisected(
    models: tuple[ModelFile, ...],
    archive: Mapping[str, Any] | None,
    inputs: tuple[tuple[str, Any], ...],
    sizes: tuple[tuple[str, int], ...],
    function: str,
    metric: str,
    tol: float | None,
    atol: float | None,
    gain: float | None,
    how: How,
    ray_address: str | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Find the fewest rules that make a MODEL wrong, or cheap.

    A result is wrong if it differs from that of the unoptimized program by more than --tol and
    --atol. Missing arguments are random, the same each time. With --metric cost, find the fewest
    rules that reach the share --gain of the whole gain, what each rule contributes, and the rules
    that can be left out.

    With --metric cost there may be several models. With --ray each of them is a task, and of a
    single one each set of rules that may be tried next. A bisection that was stopped goes on from
    its --journal, also elsewhere. A wrong result is found in a few tries, one after the other, in
    this process.
    """
    if metric == "cost":
        if archive is not None or inputs or sizes or tol is not None or atol is not None:
            raise click.UsageError("a cost has no inputs and no tolerance: needs --metric result")
        _print_costs(models, 0.9 if gain is None else gain, how, ray_address, journal, as_json)
        return
    if ray_address is not None or journal is not None:
        raise click.UsageError("--ray and --journal are for costs: needs --metric cost")
    model, *others = models
    if others:
        raise click.UsageError("results of one MODEL are compared: several need --metric cost")
    if gain is not None:
        raise click.UsageError("--gain is of costs: needs --metric cost")
    module = model.module()
    values = (*(archive or {}).items(), *inputs)
    arguments = arguments_in(module, function, values, sizes)
    result = usable(
        lambda: rx.bisect(
            module,
            arguments.values,
            function=function,
            rtol=tol,
            atol=atol,
            **how,
        )
    )
    if as_json:
        header = {"file": str(model), "function": function, "random": arguments.random}
        click.echo(json.dumps({**header, **result.as_dict()}))
        return
    if arguments.random:
        click.echo(f"random: {', '.join(arguments.random)}", err=True)
    _print(result)


def _print(found: "Bisected") -> None:
    console = Console()
    for number, rules in enumerate(found.sets, 1):
        title = "rules that make the result wrong" + f", set {number}" * (len(found.sets) > 1)
        table = _table(title, "rule", "law", "float", "place", "found")
        for culprit in rules:
            rule = culprit.rule
            cells = (rule.name, rule.law, rule.float_class, str(rule.span), culprit.finding)
            table.add_row(*map(escape, cells))
        console.print(table)
        for line in _counterexamples(rules):
            click.echo(line)
    click.echo(found.summary)


def _counterexamples(rules: "tuple[Culprit, ...]") -> Iterator[str]:
    """The counterexamples of rules that are unsound by themselves."""
    for culprit in rules:
        if not culprit.verdict.sound and culprit.verdict.counterexample is not None:
            yield str(culprit.verdict)


def _print_costs(
    models: Sequence[ModelFile],
    gain: float,
    how: How,
    ray_address: str | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    from relax_egraph.reasons.cost_tasks import CostBisection, bisect_costs

    loaded = {str(model): model.module() for model in models}
    rules, rest = rules_apart(how)
    bisection = CostBisection(loaded, rules, gain, rest)
    kept = journal_in(journal)
    with executor_of(ray_address) as executor:
        every = until_interrupted(
            lambda: usable(
                lambda: collected(
                    bisect_costs(bisection, executor, kept), len(models), "models were bisected"
                )
            )
        )
    found = dict(every.value)
    for one in found.values():
        warn_of_assumed(one.assumed)
    order = [str(model) for model in models if str(model) in found]
    if as_json:
        reports = [{"file": name, **found[name].as_dict()} for name in order]
        click.echo(json.dumps(reports[0] if len(models) == len(reports) == 1 else reports))
    else:
        for name in order:
            if len(models) > 1:
                click.echo(f"{name}:")
            _print_cost(found[name])
    every.end()


def _print_cost(found: "CostBisected") -> None:
    Console().print(_worth(found))
    if found.redundant:
        names = ", ".join(rule.name for rule in found.redundant)
        click.echo(f"matched, and can be left out together: {names}")
    click.echo(found.summary)


def _worth(found: "CostBisected") -> Table:
    """The contribution of each rule of the best program; a star for rules that reach the gain."""
    title = f"* buys {found.bought:.1%} of the gain; shares overlap, their sum need not be 100%"
    table = _table(title, "", "rule", "law", "place", "cost without", "share")
    for column in table.columns[-2:]:
        column.justify = "right"
    for gain in found.gains:
        star = "*" if gain.rule in found.rules else ""
        said = (star, gain.rule.name, gain.rule.law, str(gain.rule.span))
        table.add_row(*map(escape, said), f"{gain.cost * 1e6:.2f} µs", f"{gain.share:.2%}")
    return table


def _table(title: str, *columns: str) -> Table:
    """A table without truncation."""
    table = Table(*columns, title=title, title_justify="left")
    for column in table.columns:
        column.overflow = "fold"
    return table
