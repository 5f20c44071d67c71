"""``python -m bench.architectures``: take each architecture from torch to a running program."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import click

from bench.architectures.export import Exporter
from bench.architectures.run import SUBJECTS, outcomes_of
from bench.architectures.tables import fired_table, outcomes_table
from bench.output import console
from relax_egraph.lower.jit.object_cache import ENVIRONMENT

SECONDS = 0.5


@click.command
@click.argument("words", nargs=-1)
@click.option("--exporter", type=click.Choice(get_args(Exporter)), default="dynamo")
@click.option("--seconds", default=SECONDS, help="For each system, on each architecture.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path))
def main(words: tuple[str, ...], exporter: Exporter, seconds: float, file: Path | None) -> None:
    """Take the architectures with one of WORDS in their names from torch to a running program.

    The exit status is 1 if one of them fails, or differs from torch.
    """
    chosen = [s for s in SUBJECTS if not words or any(word in s.name for word in words)]
    if not chosen:
        raise click.UsageError("there are: " + ", ".join(s.name for s in SUBJECTS))
    out = console()
    with TemporaryDirectory() as cache:
        os.environ[ENVIRONMENT] = cache
        outcomes = outcomes_of(chosen, exporter, seconds, out)
    out.print(outcomes_table(outcomes, exporter), fired_table(outcomes))
    failures = [f"{o.name}: {o.failure}" for o in outcomes if o.failure]
    for failure in failures:
        out.print(failure, highlight=False, markup=False)
    if file is not None:
        file.write_text(json.dumps([*map(asdict, outcomes)], indent=1) + "\n", "utf-8")
    if not all(o.passed for o in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
