"""Tensor parallelism: extraction finds Megatron's plans for layers of an encoder and of a decoder.

Run from the top of the repository: ``python -m examples.tensor_parallel``; with ``--ray`` devices
are actors of Ray, else threads.  Results are computed; all times are those of the price model.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from examples.megatron.layers import Layer, Widths, decoder, encoder
from relax_egraph.ir.dims import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.shards import (
    Link,
    ShardedPlan,
    device_program,
    run_in_threads,
    sharded,
    simulated_seconds,
    stated,
)

Array = npt.NDArray[Any]

LINK = Link(bandwidth=10e9, latency=5e-6)
"""What joins the devices: 10 GB/s, 5 µs for a message."""

LAYERS = (
    encoder(Widths(hidden=1024, heads=16, groups=16, inner=4096), batch=4, length=128),
    decoder(Widths(hidden=4096, heads=32, groups=8, inner=11008), past=1024),
)
"""The layers that are planned: of BERT-large, and of a decoder with 7 billion weights."""

SMALL = (
    encoder(Widths(hidden=64, heads=8, groups=8, inner=128), batch=2, length=16),
    decoder(Widths(hidden=64, heads=8, groups=4, inner=128), past=16),
)
"""The layers whose plans are run: small, so that processes on one machine show the results."""

NAIVE = {
    "columns only": ("matmul-by-sums", "matmul-of-weight-by-sums"),
    "sums only": ("matmul-by-columns", "matmul-of-weight-by-columns"),
}
"""Plans with fewer equations: the best without sums of parts, and the best without columns."""


def plan_of(layer: Layer, parts: int, without: tuple[str, ...] = ()) -> ShardedPlan:
    """The plan that extraction finds for `layer`."""
    return sharded(
        rx.parse(layer.text),
        parts=parts,
        link=LINK,
        weights=layer.weights,
        caches=layer.caches,
        hints=layer.hints,
        without=without,
    )


def by_hand(layer: Layer, parts: int) -> float:
    """The seconds of Megatron's plan, which is written by hand, by the same prices."""
    return stated(
        rx.parse(layer.by_hand[parts]),
        parts=parts,
        link=LINK,
        weights=(*layer.weights, *layer.caches),
        hints=layer.hints,
    )


def lines_of(layer: Layer, parts: int) -> Iterator[str]:
    """The plan for `layer`, and its price beside others."""
    plan = plan_of(layer, parts)
    yield f"{layer.name}: {plan}"
    fused = simulated_seconds(device_program(plan), LINK, hints=layer.hints)
    whole = rx.explain(rx.parse(layer.text), hints=layer.hints).cost
    prices = {
        "one device": plan.alone,
        **{name: plan_of(layer, parts, without).seconds for name, without in NAIVE.items()},
        "Megatron, by hand": by_hand(layer, parts),
        "extracted": plan.seconds,
        "no plan below": plan.bound,
    }
    for name, seconds in prices.items():
        yield _line(name, seconds, plan.alone)
    yield _line("one device, fused", whole, whole)
    yield _line("extracted, fused", fused, whole)


def _line(name: str, seconds: float, alone: float) -> str:
    return f"  {name:18} {1e6 * seconds:9.1f} µs  {alone / seconds:5.2f} x  simulated"


def values_for(layer: Layer, past: int) -> dict[str, Array]:
    """Random values of the parameters of `layer`."""
    random = np.random.default_rng(0)
    values: dict[str, Array] = {}
    function = rx.parse(layer.text)["main"]
    assert isinstance(function, Function)
    for parameter in function.params:
        info = parameter.struct_info
        assert isinstance(info, TensorStructInfo)
        assert info.dims is not None
        shape = [d if isinstance(d, int) else evaluate(d, {"past": past}) for d in info.dims]
        scale = 1 / np.sqrt(shape[0]) if parameter.name in layer.weights else 1.0
        values[parameter.name] = (scale * random.standard_normal(shape)).astype(np.float32)
    return values


def off(layer: Layer, parts: int, on_actors: bool = False) -> float:
    """How far results of `parts` devices are from those of one, at most."""
    values = values_for(layer, past=9)
    program = device_program(plan_of(layer, parts))
    if on_actors:
        from relax_egraph.ray.shards import run_on_actors

        results = run_on_actors(program, values)
    else:
        results = run_in_threads(program, values)
    whole = rx.VirtualMachine(rx.build(rx.optimize(rx.parse(layer.text))))["main"](*values.values())
    expected = whole if isinstance(whole, tuple | list) else (whole,)
    return max(float(np.abs(a - b).max()) for a, b in zip(results, expected, strict=True))


def main() -> None:
    """Print plans and prices, then how far the results of devices are from those of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ray", action="store_true", help="devices are actors of Ray")
    on_actors = parser.parse_args().ray
    for layer in LAYERS:
        for parts in (2, 4):
            print("\n".join(lines_of(layer, parts)), end="\n\n")
    where = "actors of Ray" if on_actors else "threads"
    for layer in SMALL:
        for parts in (2, 4):
            error = off(layer, parts, on_actors)
            print(f"{layer.name} on {parts} {where}: off by at most {error:.1e}")


if __name__ == "__main__":
    main()
