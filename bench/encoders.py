"""The optimizer on encoders of growing depth: its time, and the share of one layer."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table

import relax_egraph as rx
from bench.census import Census, census
from bench.language import bindings_in
from bench.transformer import Sizes, encoder
from relax_egraph.lower.jit.object_cache import ENVIRONMENT

DEPTHS = (1, 2, 4, 8, 12, 24, 48, 96)
COMPARED = (12, 48)
"""The depths whose difference is one layer."""


@dataclass(frozen=True, slots=True)
class Run:
    """One optimization: seconds of its parts, and its result.

    `nodes` are of all distinct regions, and `moved` is the time of saturation outside its phases:
    loading and reading back.  `rest` is encoding, decoding and constant folding.
    """

    layers: int
    bindings: int
    regions: int
    nodes: int
    saturated: float
    moved: float
    extracted: float
    rest: float
    statuses: tuple[str, ...]
    before: float
    after: float
    census: Census


def optimized(sizes: Sizes) -> Run:
    """Optimize one encoder; one-time work of the process is done before the clock starts."""
    module = encoder(sizes)
    with without_cache():
        rx.optimize(encoder(Sizes(1)))
        start = time.perf_counter()
        explained = rx.explain(module)
        total = time.perf_counter() - start
    regions = explained.regions
    phases = sum(p.seconds for r in regions for p in r.saturation.phases)
    saturation = sum(r.saturation.seconds for r in regions)
    extraction = sum(r.extraction.seconds for r in regions)
    return Run(
        layers=sizes.layers,
        bindings=bindings_in(module),
        regions=len(regions),
        nodes=sum(r.saturation.nodes for r in regions),
        saturated=phases,
        moved=saturation - phases,
        extracted=extraction,
        rest=total - saturation - extraction,
        statuses=tuple(dict.fromkeys(r.extraction.status for r in regions)),
        before=explained.cost_before,
        after=explained.cost,
        census=census(explained.module),
    )


@contextmanager
def without_cache() -> Generator[None]:
    """Compute plans anew inside, since the times of a cached plan are those of its computation."""
    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = "off"
    try:
        yield
    finally:
        del os.environ[ENVIRONMENT]
        if before is not None:
            os.environ[ENVIRONMENT] = before


def encoders_tables(depths: Sequence[int] = DEPTHS) -> Group:
    """Times by depth, for explicit shapes; one layer, for both spellings."""
    runs = {layers: optimized(Sizes(layers)) for layers in depths}
    computed = {n: optimized(Sizes(n, computed_shapes=True)) for n in COMPARED}
    return Group(
        times_table("encoders", list(runs.values())),
        times_table("encoders, shapes computed", list(computed.values())),
        layer_table("a layer", runs),
        layer_table("a layer, shapes computed", computed),
    )


def times_table(title: str, runs: Sequence[Run]) -> Table:
    """Seconds for each part, and microseconds for each binding, constant for linear growth."""
    parts = ("saturate", "load, read back", "extract", "rest")
    columns = ("layers", "bindings", "regions", "e-nodes", *parts, "µs a binding", "extraction")
    table = Table(*columns, "cost", title=title, title_justify="left")
    for run in runs:
        counts = map(str, (run.layers, run.bindings, run.regions, run.nodes))
        times = (run.saturated, run.moved, run.extracted, run.rest)
        seconds = (f"{each:.3f}" for each in times)
        each = f"{sum(times) / run.bindings * 1e6:.0f}"
        cost = f"{run.before * 1e3:.2f} → {run.after * 1e3:.2f} ms"
        table.add_row(*counts, *seconds, each, "; ".join(run.statuses), cost)
    return table


def layer_table(title: str, runs: dict[int, Run]) -> Table:
    """Operators and kernels of one layer of the optimized program."""
    shallow, deep = (runs[layers].census for layers in COMPARED)
    layer = deep.per_layer(shallow, COMPARED[1] - COMPARED[0])
    table = Table("kernel", "a layer", title=title, title_justify="left")
    for name, count in sorted(layer.kernels.items()):
        table.add_row(name, str(count))
    table.add_section()
    table.add_row("kernels", str(layer.kernels.total()))
    for name, count in sorted(layer.operators.items()):
        table.add_row(f"R.{name}", str(count))
    return table
