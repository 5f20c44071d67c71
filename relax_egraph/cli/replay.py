"""``relax-egraph replay``: re-executes the proofs of optimized models, step by step."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from relax_egraph.base.interruption import collected
from relax_egraph.base.progress import counted
from relax_egraph.cli import options
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import commands, until_interrupted, usable
from relax_egraph.cli.model import How, ModelFile, rules_apart

if TYPE_CHECKING:
    from relax_egraph.reasons.replays import ModelReplayed


@commands.command("replay")
@options.models
@options.seeds
@options.sizes
@options.optimization
@options.processes
@options.tasks
@options.as_json
def print_replays(
    models: tuple[ModelFile, ...],
    seeds: range,
    sizes: tuple[tuple[str, int], ...],
    how: How,
    processes: int,
    ray_address: str | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Compute each step of the proofs of optimized models.

    Each MODEL is optimized, and the chain of rules from the program to the result is found. Both
    sides of each step are computed with numpy on random values, and compared within the float class
    of its rule. The exit status is 1 if a step does not hold, which names the rule, or if there is
    no proof.

    Each model and seed is a task, in processes of this machine or with --ray on a cluster. Replays
    that were stopped go on from their --journal, also elsewhere. A single model with one seed gains
    nothing by either.
    """
    from relax_egraph.reasons.replays import Replays, replays

    loaded = {str(model): model.module() for model in models}
    rules, rest = rules_apart(how)
    what = Replays(loaded, rules, seeds, dict(sizes) or None, rest)
    kept, total = journal_in(journal), len(loaded) * len(seeds)
    with (
        executor_of(ray_address, min(processes, total)) as executor,
        counted("replaying", total) as done,
    ):

        def told() -> "Iterator[ModelReplayed]":
            for one in replays(what, executor, kept):
                done(one)
                yield one

        every = until_interrupted(
            lambda: usable(lambda: collected(told(), total, "replays were made"))
        )
    order = {(name, seed): place for place, name in enumerate(loaded) for seed in seeds}
    found = sorted(every.value, key=lambda one: (order[one.model, one.seed], one.seed))
    if as_json:
        click.echo(json.dumps([one.as_dict() for one in found]))
    else:
        _print(found)
    every.end()
    if any(one.failure for one in found):
        raise SystemExit(1)


def _print(found: "Sequence[ModelReplayed]") -> None:
    table = Table("model", "seed", "steps", "values", "largest error", "needs", "not computed")
    for column in table.columns[1:5]:
        column.justify = "right"
    for one in found:
        figures = (str(one.steps), str(one.values), f"{one.error:.1e}", one.needs)
        cells = ("", "", "", "fails") if one.failure else figures
        table.add_row(escape(one.model), str(one.seed), *cells, str(one.uncomputed or ""))
    Console().print(table)
    wrong = [one for one in found if one.failure]
    for one in wrong:
        click.echo(f"{one.model}, seed {one.seed}: {one.failure}")
    count = f"{len(found)} replay{'s' * (len(found) != 1)}"
    click.echo(f"{count}: {len(found) - len(wrong)} hold, {len(wrong)} do not")
