"""Training through torch.compile: losses beside eager torch's, and seconds of a step.

Run from the top of the repository:
``python -m bench.torch.training [WORDS] [--steps N] [--json FILE]``.
"""

import argparse
import copy
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch
from rich.table import Table
from torch import nn

from bench.output import console
from relax_egraph.frontends.torch_backend.backend import relax_egraph

BACKENDS = {"ours": relax_egraph, "eager": None, "inductor": "inductor"}

TOLERANCE = 1e-5
"""How far a loss may be from eager's, relative to the first loss."""


class Recurrent(nn.Module):
    """A classifier by the last state of an LSTM, step by step: torch compiles no ``nn.LSTM``."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(16, 32)
        self.head = nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of each sequence."""
        state, memory = x.new_zeros(len(x), 32), x.new_zeros(len(x), 32)
        for step in x.unbind(1):
            state, memory = self.cell(step, (state, memory))
        return self.head(state)


class Attentive(nn.Module):
    """A classifier by the mean of two transformer layers."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of each sequence."""
        return self.head(self.layers(x).mean(1))


def mlp() -> nn.Module:
    """Three layers."""
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 8)
    )


def conv_net() -> nn.Module:
    """Two convolutions with batch norm and pooling."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 8)),
    )


@dataclass(frozen=True, slots=True)
class Task:
    """A network to train on random inputs of `shape`."""

    name: str
    network: Callable[[], nn.Module]
    shape: tuple[int, ...]


TASKS = (
    Task("MLP", mlp, (64, 64)),
    Task("ConvNet", conv_net, (16, 3, 16, 16)),
    Task("transformer", Attentive, (16, 12, 32)),
    Task("LSTM", Recurrent, (16, 12, 16)),
)

OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "SGD": lambda network: torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9),
    "Adam": lambda network: torch.optim.Adam(network.parameters(), lr=1e-3),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The largest difference of losses from eager's, and seconds by backend.

    `first` are seconds of the first step, which compiles; `step` those of a later one.
    """

    task: str
    optimizer: str
    difference: dict[str, float]
    first: dict[str, float]
    step: dict[str, float]
    failures: dict[str, str]


def outcome(task: Task, optimizer: str, steps: int) -> Outcome:
    """Train the network of `task` with each backend, from the same weights on the same data."""
    torch.manual_seed(0)
    start = task.network()
    data = torch.randn(steps, *task.shape)
    labels = torch.randint(0, 8, (steps, task.shape[0]))
    losses: dict[str, list[float]] = {}
    first: dict[str, float] = {}
    step: dict[str, float] = {}
    failures: dict[str, str] = {}
    for name, backend in BACKENDS.items():
        torch.compiler.reset()
        network = copy.deepcopy(start)
        run = network if backend is None else torch.compile(network, backend=backend)
        updates = OPTIMIZERS[optimizer](network)
        try:
            losses[name], seconds = _trained(run, updates, data, labels)
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        first[name], step[name] = seconds[0], median(seconds[1:])
    eager = losses["eager"]
    difference = {
        name: max(abs(a - b) for a, b in zip(own, eager, strict=True)) / abs(eager[0])
        for name, own in losses.items()
    }
    return Outcome(task.name, optimizer, difference, first, step, failures)


def _trained(
    run: Callable[..., torch.Tensor],
    updates: torch.optim.Optimizer,
    data: torch.Tensor,
    labels: torch.Tensor,
) -> tuple[list[float], list[float]]:
    """The loss and the seconds of each step."""
    losses: list[float] = []
    seconds: list[float] = []
    for x, label in zip(data, labels, strict=True):
        begin = time.perf_counter()
        updates.zero_grad()
        loss = nn.functional.cross_entropy(run(x), label)
        loss.backward()
        updates.step()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    return losses, seconds


def main() -> int:
    """Print a table; the exit status is 1 if a loss differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chosen = [t for t in TASKS if not options.words or t.name in options.words]
    each = [outcome(t, o, options.steps) for t in chosen for o in OPTIMIZERS]
    table = Table("task", "optimizer", "difference", *(f"{b}, ms" for b in BACKENDS), "first, s")
    for o in each:
        table.add_row(
            o.task,
            o.optimizer,
            o.failures.get("ours") or f"{o.difference['ours']:.1e}",
            *(f"{1e3 * o.step[b]:.2f}" if b in o.step else "-" for b in BACKENDS),
            " / ".join(f"{o.first[b]:.1f}" for b in ("ours", "inductor") if b in o.first),
        )
    console().print(table)
    if options.json:
        options.json.write_text(json.dumps([*map(asdict, each)], indent=1) + "\n")
    return int(any("ours" in o.failures or o.difference["ours"] > TOLERANCE for o in each))


if __name__ == "__main__":
    raise SystemExit(main())
