"""``python -m bench``: this compiler beside other systems, and beside the machine's limits."""

import json
import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table

from bench import architectures, peers, tables
from bench.building import Building, buildings
from bench.compiling import Compilation, compilations
from bench.corners import corners
from bench.encoders import encoders_tables
from bench.language import language_table
from bench.limits import roofs
from bench.machine import Group, machine_groups
from bench.measure import UNITS, measure
from bench.model_tables import buildings_table
from bench.models import outcomes_of, tables_of
from bench.networks import networks
from bench.ours import NATIVE
from bench.output import console
from bench.result import Result
from bench.roofline import roofline
from bench.roofline_svg import roofline_svg
from bench.workloads import workloads
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit.object_cache import ENVIRONMENT
from relax_egraph.lower.jit.processors import processor

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command
@click.option("--only", default="", metavar="WORDS", help="What has one of them in its name.")
@click.option("--models", type=FOLDER, help="A folder of networks as lists of layers.")
@click.option("--seconds", default=0.3, help="For each system, on each workload.")
@click.option("--target", default=NATIVE, help="The processor to compile workloads for.")
@click.option("--json", "file", type=FILE, help="Where to write all that was measured.")
@click.option("--svg", "picture", type=FILE, help="The roofline; by default beside the JSON.")
def main(
    only: str,
    models: Path | None,
    seconds: float,
    target: str,
    file: Path | None,
    picture: Path | None,
) -> None:
    """Measure workloads on all systems that are installed, and the compiler itself.

    The tables are named language, encoders, architectures, machine, compile and models; workloads
    by their first column.

    With another target than "native" these are the workloads alone.  Peers are held to its vectors,
    except onnxruntime, which takes the widest that this processor has.
    """

    def chosen(name: str) -> bool:
        return not only or any(word in name for word in only.split())

    def of_compiler(name: str) -> bool:
        return target == NATIVE and chosen(name)

    out = console()
    cpu = processor(target)
    title = "one thread, µs" if target == NATIVE else f"{cpu.cpu}, one thread, µs"
    groups_of = {
        title: [w for w in workloads(models).values() if chosen(w.name)],
        f"operators, {title}": [w for w in corners().values() if chosen(w.name)],
        f"models, {title}": [
            w for w in networks().values() if of_compiler("models") or chosen(w.name)
        ],
    }
    parallel = [w for ws in groups_of.values() for w in ws if UNITS[True] & w.wanted.keys()]
    with TemporaryDirectory() as cache:
        os.environ[ENVIRONMENT] = cache
        if of_compiler("language"):
            out.print(language_table())
        if of_compiler("encoders"):
            out.print(encoders_tables())
        if of_compiler("architectures") and architectures.installed():
            out.print(*_architectures(seconds, out))
        groups = machine_groups(seconds) if of_compiler("machine") else []
        for group in groups:
            out.print(tables.figures_table(group.title, group.figures))
        compiled = compilations() if of_compiler("compile") else []
        if compiled:
            out.print(tables.compilations_table(compiled))
        built = buildings() if of_compiler("models") else []
        if built:
            out.print(buildings_table(built))
        if models is not None and of_compiler("models"):
            out.print(*tables_of(outcomes_of(models, seconds, out)))
        measured = partial(_measured, models=models, seconds=seconds, target=target, out=out)
        one: list[Result] = []
        for name, chosen_ones in groups_of.items():
            results = measured([w.name for w in chosen_ones], threads=1)
            if results:
                out.print(tables.one_thread_table(results, name))
            one += results
        if optimized := [r for r in one if "unoptimized" in r.wanted]:
            out.print(tables.optimizer_table(optimized))
        two = measured([w.name for w in parallel], threads=2)
        if two:
            out.print(tables.two_threads_table(two))
    for remark in tables.remarks([*one, *two]):
        out.print(remark, highlight=False)
    if file is not None:
        file.write_text(_report(cpu, groups, compiled, built, [*one, *two]), "utf-8")
        picture = picture or file.with_suffix(".svg")
    drawn = roofline(roofs(seconds, cpu), one) if picture is not None else None
    if drawn is not None and picture is not None and drawn.subjects:
        picture.write_text(
            roofline_svg(drawn, f"Roofline: {cpu.cpu}, one thread, float32"), "utf-8"
        )


def _architectures(seconds: float, out: Console) -> tuple[Table, ...]:
    from bench.architectures.run import architectures_tables  # it imports torch

    return architectures_tables(seconds, out)


def _measured(
    names: Iterable[str],
    models: Path | None,
    threads: int,
    seconds: float,
    target: str,
    out: Console,
) -> list[Result]:
    """The results of workloads, in a new process: systems read the environment early."""
    os.environ.update(peers.environment(threads, processor(target).vector_bits))
    context = multiprocessing.get_context("spawn")
    results: list[Result] = []
    with ProcessPoolExecutor(1, mp_context=context) as process, out.status("") as status:
        for name in names:
            status.update(f"{name}, {threads} threads" if threads > 1 else name)
            run = process.submit(measure, name, models, threads, seconds, target)
            results.append(run.result())
    return results


def _report(
    target: Target,
    groups: list[Group],
    compiled: list[Compilation],
    built: list[Building],
    results: list[Result],
) -> str:
    """All results as JSON; times are in seconds, unless a title states another unit."""
    report = {
        "cpu": target.cpu,
        "peers": peers.installed(),
        "machine": [asdict(g) for g in groups],
        "compile": [asdict(c) for c in compiled],
        "models": [asdict(b) for b in built],
        "workloads": [{**asdict(r), "ratios": r.ratios} for r in results],
    }
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
