"""Recurrent layers of torch beside torch itself and onnxruntime, on one thread.

``python -m bench.recurrence [WORDS]``: LSTM and GRU, of 1 and 2 layers, forward and in both
directions, exported with a symbolic number of times and run at 50 and 512.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

import relax_egraph as rx
from bench.architectures.export import Exported, exported
from bench.architectures.outcome import TOLERANCE
from bench.architectures.subject import Array, Input, Sizes, Subject
from bench.output import console
from bench.sessions import session_of
from bench.tables import ENOUGH, SHORT
from bench.timing import Run, least

torch: Any = import_module("torch")  # optional: absent when types are checked

WANTED = 1.2
"""The minimal speed relative to the best peer."""

TIMES: tuple[Sizes, ...] = ({"time": 50}, {"time": 512})
EXTENTS = ((1, 128, 128), (1, 256, 256), (1, 512, 512), (8, 256, 256))
"""The numbers of sequences, of features and of elements of a state."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The largest relative difference from torch, and seconds of a call by system."""

    name: str
    difference: float
    seconds: dict[str, float]

    @property
    def ratio(self) -> float:
        """The time of the best peer relative to ours."""
        peers = (s for system, s in self.seconds.items() if system != "ours")
        return min(peers) / self.seconds["ours"]


def subjects() -> Iterator[Subject]:
    """All layers, by the names of the table."""
    for kind, layers, is_both, extents in product(("LSTM", "GRU"), (1, 2), (False, True), EXTENTS):
        batch, features, size = extents
        build = partial(_network, kind, features, size, layers, is_both)
        ways = "both" if is_both else "forward"
        name = f"{kind} {layers} {ways} {batch}×{features}→{size}"
        yield Subject(name, build, {"x": Input(("time", batch, features))}, TIMES, layers)


def _network(kind: str, features: int, size: int, layers: int, is_both: bool) -> Any:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = getattr(torch.nn, kind)
            self.body = layer(features, size, num_layers=layers, bidirectional=is_both)

        def forward(self, x: Any) -> Any:
            return self.body(x)[0]

    return Network()


def outcomes_of(subject: Subject, seconds: float) -> Iterator[Outcome]:
    """The outcomes of `subject` at each size; outputs are compared before a clock starts."""
    export = exported(subject, "torchscript")
    program = rx.build(rx.optimize(rx.from_onnx(export.model)))
    main = rx.VirtualMachine(program, num_threads=1)["main"]
    session = _session(export)
    for sizes in subject.sizes:
        inputs = subject.drawn(sizes)
        expected = export.expected(inputs)
        results = {"ours": np.array(main(*inputs.values())), "onnxruntime": session(inputs)}
        difference = max(_difference(result, expected) for result in results.values())
        runs: dict[str, Run] = {
            "ours": partial(main, *inputs.values()),
            "onnxruntime": partial(session, inputs),
            "torch": partial(_in_torch, export.network, [*map(torch.from_numpy, inputs.values())]),
        }
        yield Outcome(f"{subject.name}, {sizes['time']}", difference, least(runs, seconds))


def _session(export: Exported) -> Callable[[dict[str, Array]], Array]:
    session = session_of(export.model.SerializeToString())
    return lambda inputs: session.run(None, inputs)[0]


def _in_torch(network: Any, inputs: Sequence[Any]) -> Any:
    with torch.no_grad():
        return network(*inputs)


def _difference(result: Array, expected: Array) -> float:
    return float(np.abs(result - expected).max() / np.abs(expected).max())


def main() -> int:
    """Print a table; returns 1 if a result is wrong, or slower than wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="of the names of layers; all must occur")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each system and layer")
    parser.add_argument("--times", type=int, nargs="*", help="numbers of times, by default 50, 512")
    options = parser.parse_args()
    table = Table("layer, times", "difference", "ours, ms", "onnxruntime", "torch", "best / ours")
    failed, out = False, console()
    for subject in subjects():
        if not all(word in subject.name for word in options.words):
            continue
        if options.times:
            subject = replace(subject, sizes=tuple({"time": n} for n in options.times))
        with out.status(subject.name):
            for outcome in outcomes_of(subject, options.seconds):
                is_fast, is_right = outcome.ratio >= WANTED, outcome.difference < TOLERANCE
                failed |= not is_fast or not is_right
                table.add_row(
                    outcome.name,
                    Text(f"{outcome.difference:.0e}", ENOUGH if is_right else SHORT),
                    *(f"{seconds * 1e3:.3f}" for seconds in outcome.seconds.values()),
                    Text(f"{outcome.ratio:.2f}", ENOUGH if is_fast else SHORT),
                )
    out.print(table)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
