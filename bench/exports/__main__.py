"""``python -m bench.exports``: take models of transformers from torch to a running program."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

import relax_egraph as rx
from bench.exports import media, texts
from bench.exports.files import exported
from bench.exports.network import Network
from bench.exports.outcome import Outcome, outcome_of
from bench.output import console
from bench.tables import ENOUGH, SHORT
from bench.transformer import Sizes, encoder
from relax_egraph.lower.jit.object_cache import ENVIRONMENT

NETWORKS = (
    *(*texts.ENCODERS, *texts.DECODERS, *texts.TRANSLATORS),
    *(*texts.MIXTURES, *texts.CHUNKED, *texts.UNROLLED),
    *(*media.IMAGES, *media.CONVOLUTIONAL, *media.CLIPS, *media.SOUNDS, *media.SPECTRA),
)
STEPS = ("import", "optimize", "build")


@click.command
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("words", nargs=-1)
@click.option("--seconds", default=0.5, help="For each system, on each network.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--only-export", is_flag=True, help="Write the files that are not there yet.")
def main(
    folder: Path, words: tuple[str, ...], seconds: float, file: Path | None, only_export: bool
) -> None:
    """Take the networks with names or kinds in WORDS from torch to a running program.

    Exported networks stay in FOLDER and are not exported again.  The exit status is 1 if one fails,
    or differs from torch.
    """
    chosen = [n for n in NETWORKS if not words or n.name in words or n.kind in words]
    if not chosen:
        raise click.UsageError("there are: " + ", ".join(n.name for n in NETWORKS))
    out = console()
    if only_export:
        for network in chosen:
            with out.status(network.name):
                _export(network, folder, out)
        return
    with TemporaryDirectory() as cache:
        os.environ[ENVIRONMENT] = cache
        rx.build(rx.optimize(encoder(Sizes(1))))  # one-time work of the process
        outcomes: list[Outcome] = []
        for network in chosen:
            with out.status(network.name):
                outcomes.append(outcome_of(network, folder, seconds))
            if file is not None:
                file.write_text(json.dumps([*map(asdict, outcomes)], indent=1) + "\n", "utf-8")
    _report(outcomes, out)
    if not all(o.passed for o in outcomes):
        raise SystemExit(1)


def _export(network: Network, folder: Path, out: Console) -> None:
    try:
        exported(network, folder)
    except Exception as error:
        out.print(f"{network.name}: {type(error).__name__}: {error}", highlight=False, markup=False)


def _report(outcomes: Sequence[Outcome], out: Console) -> None:
    columns = ("difference", *STEPS, "gap", "in numpy", "ours, ms", "onnxruntime", "/ ours")
    title = "exports of transformers, one thread, CPU seconds"
    table = Table("network", "kind", *columns, title=title, title_justify="left")
    for o in outcomes:
        table.add_row(
            o.name,
            o.kind,
            _difference(o),
            *(f"{o.seconds[s]:.2f} s" if s in o.seconds else "" for s in STEPS),
            f"{o.gap:.2%}" if o.runs else "",
            ", ".join(f"{name} {count}" for name, count in o.late.items()),
            *(f"{seconds * 1e3:.2f}" for seconds in o.runs.values()),
            *((Text(f"{o.ratio:.2f}", ENOUGH if o.ratio >= 1 else SHORT),) if o.runs else ()),
        )
    out.print(table)
    for o in outcomes:
        if o.failure:
            out.print(f"{o.name}: {o.failure}", highlight=False, markup=False)


def _difference(outcome: Outcome) -> Text:
    if outcome.failure:
        return Text(outcome.failure.split(":")[0] + " fails", SHORT)
    return Text(f"{max(outcome.differences):.0e}", ENOUGH if outcome.passed else SHORT)


if __name__ == "__main__":
    main()
