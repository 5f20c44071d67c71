"""Networks with random weights, exported and through torch.compile: equal to torch, how fast.

Run from the top of the repository: ``python -m bench.torch.models [WORDS] [--json FILE]``.
WORDS are names or packages.  Each network is a task on one thread, in processes of this machine or
with ``--ray ADDRESS`` on a cluster; a run that was stopped goes on from its ``--journal``.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import click
import torch
from rich.table import Table
from torch._dynamo.utils import counters

import relax_egraph as rx
from bench.case_pool import TIME_LIMIT, Suite, outcomes
from bench.output import console
from bench.timing import least
from bench.torch.peers import PEERS
from bench.torch.zoo import Model, zoo
from relax_egraph.cli import options
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import usable
from relax_egraph.frontends.torch_backend.backend import relax_egraph

TOLERANCE = 1e-4
"""The allowed difference from torch, relative to the largest magnitude of the result."""

WAYS = ("export", "compile")


@dataclass(slots=True)
class Outcome:
    """What came of the network `name`, by way: ``export`` or ``compile``.

    `differences` are the largest from torch at any of the sizes; `seconds` those until the first
    result, of ours and of others; `runs` those of a call at the first sizes, by system.  `left`
    counts the operators that stay in torch, `graphs` are how often torch.compile compiled.
    """

    name: str
    package: str
    differences: dict[str, float] = field(default_factory=dict[str, float])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    runs: dict[str, float] = field(default_factory=dict[str, float])
    failures: dict[str, str] = field(default_factory=dict[str, str])
    left: list[str] = field(default_factory=list[str])
    graphs: int = 0

    def agrees(self, way: str) -> bool:
        """Whether it runs `way` and agrees with torch."""
        return way not in self.failures and self.differences.get(way, 1.0) < TOLERANCE


def run(model: Model, *, seconds: float, peers: Sequence[str]) -> Outcome:
    """The outcome of `model`; systems are timed for about `seconds` each."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.compiler.reset()
    counters.clear()
    found = Outcome(model.name, model.package)
    with torch.no_grad():
        network = model.build()
        inputs = [model.tensors(sizes) for sizes in model.sizes]
        wanted = [_first(network(*each)) for each in inputs]
        systems: dict[str, Callable[[], Any]] = {"eager": lambda: network(*inputs[0])}
        for way, made in (("export", _exported), ("compile", _compiled)):
            try:
                call = made(model, network, inputs[0], found)
                found.differences[way] = max(
                    _difference(_first(call(*each)), want)
                    for each, want in zip(inputs, wanted, strict=True)
                )
                systems[way] = lambda call=call: call(*inputs[0])
            except Exception as error:
                lines = f"{type(error).__name__}: {error}".splitlines()
                found.failures[way] = " ".join(line.strip() for line in lines[:2])[:300]
        found.graphs = counters["stats"]["unique_graphs"]
        for name in peers:
            _add_peer(name, network, inputs[0], found, systems)
        found.runs = least(systems, seconds)
    return found


def _exported(
    model: Model, network: torch.nn.Module, inputs: Sequence[torch.Tensor], found: Outcome
) -> Callable[..., Any]:
    dims = dict.fromkeys(model.symbols, torch.export.Dim.AUTO)
    shapes = model.dynamic_shapes(dims)
    program = torch.export.export(network, tuple(inputs), dynamic_shapes=shapes)
    begin = time.process_time()
    module = rx.from_torch(program)
    machine = rx.VirtualMachine(rx.build(rx.optimize(module)), num_threads=1)
    found.seconds["export"] = time.process_time() - begin
    main = machine["main"]

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        return torch.from_dlpack(_first(main(*tensors)))

    return call


def _compiled(
    model: Model, network: torch.nn.Module, inputs: Sequence[torch.Tensor], found: Outcome
) -> Callable[..., Any]:
    for each, tensor in zip(model.inputs.values(), inputs, strict=True):
        for axis, extent in enumerate(each.shape):
            if extent in model.symbols:
                torch._dynamo.maybe_mark_dynamic(tensor, axis)
    call = torch.compile(network, backend=relax_egraph, options={"freeze": True})
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call(*inputs)
    found.seconds["compile"] = time.process_time() - begin
    found.left = [str(w.message) for w in said if "leaves nodes to torch" in str(w.message)]
    return call


def _add_peer(
    name: str,
    network: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    found: Outcome,
    systems: dict[str, Callable[[], Any]],
) -> None:
    begin = time.perf_counter()
    try:
        systems[name] = PEERS[name](network, inputs)
    except Exception as error:
        found.failures[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return
    found.seconds[name] = time.perf_counter() - begin


def _first(result: Any) -> Any:
    while isinstance(result, tuple | list):
        result = result[0]
    return result


def _difference(result: torch.Tensor, wanted: torch.Tensor) -> float:
    if result.shape != wanted.shape:
        return float("inf")
    difference = (result - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6)
    return float(difference) if difference == difference else float("inf")


def _fails(outcome: Outcome) -> bool:
    return not all(map(outcome.agrees, WAYS))


def _table(each: Sequence[Outcome], peers: Sequence[str]) -> Table:
    columns = (*(f"{system}, s" for system in (*WAYS, *peers)), "graphs")
    runs = ("eager", *WAYS, *peers)
    table = Table("network", "package", *WAYS, *columns, *(f"{system}, ms" for system in runs))
    for o in each:
        table.add_row(
            o.name,
            o.package,
            *(f"{o.differences[w]:.0e}" if w in o.differences else "fails" for w in WAYS),
            *(_figure(o.seconds.get(system), "{:.2f}") for system in (*WAYS, *peers)),
            str(o.graphs) + ("*" if o.left else ""),
            *(_figure(o.runs.get(system), "{:.2f}", 1e3) for system in runs),
        )
    return table


def _ratios(each: Sequence[Outcome], peers: Sequence[str]) -> Iterator[str]:
    """By way and other system: the geometric mean and the least of their time, relative to ours."""
    for way in WAYS:
        for peer in ("eager", *peers):
            both = [o.runs[peer] / o.runs[way] for o in each if {peer, way} <= o.runs.keys()]
            if both:
                mean, ahead = geometric_mean(both), sum(ratio >= 1 for ratio in both)
                yield (
                    f"{peer} / {way}: {mean:.2f} in the mean, least {min(both):.2f}, "
                    f"1 or more in {ahead} of {len(both)}"
                )


def _figure(value: float | None, form: str, scale: float = 1.0) -> str:
    return "" if value is None else form.format(value * scale)


def suite_of(seconds: float, peers: Sequence[str]) -> Suite[str, Outcome]:
    """The suite of networks, which are named; systems are timed for about `seconds` each."""
    return Suite(
        "bench.torch.models",
        *(str, partial(run_named, seconds=seconds, peers=peers), lost, _fails, asdict, outcome_in),
        libraries=("torch", "transformers", "torchvision", "timm", "egglog", "llvmlite", *peers),
        options={"seconds": seconds, "peers": [*peers]},
        limit=TIME_LIMIT * (1 + len(peers)),
    )


def run_named(name: str, seconds: float, peers: Sequence[str]) -> Outcome:
    """The outcome of the network `name`."""
    return run(next(m for m in zoo() if m.name == name), seconds=seconds, peers=peers)


def lost(name: str, reason: str) -> Outcome:
    """The outcome of a network whose process died."""
    package = next(m.package for m in zoo() if m.name == name)
    return Outcome(name, package, failures=dict.fromkeys(WAYS, reason))


def outcome_in(data: dict[str, Any]) -> Outcome:
    """The outcome of which `data` are the fields."""
    return Outcome(**data)


@click.command
@click.argument("words", nargs=-1)
@click.option("--seconds", default=0.5, show_default=True, help="The time for each system.")
@click.option(
    "--peer", "peers", multiple=True, type=click.Choice([*PEERS]), help="Measure it, too."
)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write outcomes here.")
@options.processes
@options.tasks
def main(
    words: tuple[str, ...],
    seconds: float,
    peers: tuple[str, ...],
    file: Path | None,
    processes: int,
    ray_address: str | None,
    journal: Path | None,
) -> None:
    """Run the networks, or those of the names or packages WORDS.

    The exit status is 1 if one fails, or differs from torch.
    """
    names = [m.name for m in zoo() if not words or {m.name, m.package} & set(words)]
    kept = journal_in(journal)
    with executor_of(ray_address, processes) as executor:
        each = usable(lambda: outcomes(suite_of(seconds, peers), names, executor, kept))
    out = console()
    out.print(_table(each, peers))
    for o in each:
        for way, reason in o.failures.items():
            out.print(f"{o.name}, {way}: {reason}", highlight=False, markup=False)
        for message in o.left:
            out.print(f"{o.name}: {message}", highlight=False, markup=False)
    for way in WAYS:
        out.print(f"{way}: {sum(o.agrees(way) for o in each)} of {len(each)} agree with torch")
    for line in _ratios(each, peers):
        out.print(line, highlight=False)
    if file:
        file.write_text(json.dumps([*map(asdict, each)], indent=1) + "\n")
    raise SystemExit(int(any(map(_fails, each))))


if __name__ == "__main__":
    from bench.torch import models  # functions of `__main__` have no name in other processes

    models.main()
