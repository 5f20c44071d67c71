"""Training through torch.compile: errors of the losses beside eager torch's, seconds of a step.

Run from the top of the repository:
``python -m bench.torch.training [WORDS] [--steps N] [--seeds N] [--json FILE]``.

Errors are to eager torch in float64, in the median of several trainings: Adam moves a weight by the
sign of its first gradient, however small, so that a rounding decides some trainings, of any system.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
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
"""How far losses may be from those of float64, relative to the first loss."""


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
    """The largest errors of losses, one of each training, and seconds, by backend.

    `first` are seconds of the first step, which compiles; `step` those of a later one.
    """

    task: str
    optimizer: str
    errors: dict[str, list[float]]
    first: dict[str, float]
    step: dict[str, float]
    failures: dict[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """A training: the weights that it starts with, a batch and its labels for each step."""

    weights: Mapping[str, torch.Tensor]
    data: torch.Tensor
    labels: torch.Tensor


def outcome(task: Task, optimizer: str, steps: int, seeds: int) -> Outcome:
    """Train the network of `task` with each backend, from the same weights on the same data."""
    runs = [_drawn(task, steps, seed) for seed in range(seeds)]
    exact = [_trained(*_exactly(task), optimizer, run)[0] for run in runs]
    errors: dict[str, list[float]] = {}
    first: dict[str, float] = {}
    step: dict[str, float] = {}
    failures: dict[str, str] = {}
    for name, backend in BACKENDS.items():
        torch.compiler.reset()
        network = task.network()
        called = network if backend is None else torch.compile(network, backend=backend)
        try:
            each = [_trained(network, called, optimizer, run) for run in runs]
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        pairs = zip(each, exact, strict=True)
        errors[name] = [_error(losses, wanted) for (losses, _), wanted in pairs]
        seconds = each[0][1]
        first[name], step[name] = seconds[0], median(seconds[1:])
    return Outcome(task.name, optimizer, errors, first, step, failures)


def _drawn(task: Task, steps: int, seed: int) -> Run:
    torch.manual_seed(seed)
    weights = task.network().state_dict()
    data = torch.randn(steps, *task.shape)
    return Run(weights, data, torch.randint(0, 8, (steps, task.shape[0])))


def _exactly(task: Task) -> tuple[nn.Module, nn.Module]:
    """The network in float64, and what is called of it."""
    network = task.network().double()
    return network, network


def _error(losses: Sequence[float], wanted: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(losses, wanted, strict=True)) / abs(wanted[0])


def _trained(
    network: nn.Module, called: Callable[..., torch.Tensor], optimizer: str, run: Run
) -> tuple[list[float], list[float]]:
    """The loss and the seconds of each step of `run`, by what is `called` of `network`."""
    network.load_state_dict(run.weights)
    updates = OPTIMIZERS[optimizer](network)
    dtype = next(network.parameters()).dtype
    losses: list[float] = []
    seconds: list[float] = []
    for x, label in zip(run.data.to(dtype), run.labels, strict=True):
        begin = time.perf_counter()
        updates.zero_grad()
        loss = nn.functional.cross_entropy(called(x), label)
        loss.backward()
        updates.step()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    return losses, seconds


def main() -> int:
    """Print a table; the exit status is 1 if losses of ours differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each network")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chosen = [t for t in TASKS if not options.words or t.name in options.words]
    each = [outcome(t, o, options.steps, options.seeds) for t in chosen for o in OPTIMIZERS]
    errors, times = (f"{b}, error" for b in BACKENDS), (f"{b}, ms" for b in BACKENDS)
    table = Table("task", "optimizer", *errors, *times, "first, s")
    for o in each:
        table.add_row(
            o.task,
            o.optimizer,
            *(_errors(o.errors[b]) if b in o.errors else o.failures[b] for b in BACKENDS),
            *(f"{1e3 * o.step[b]:.2f}" if b in o.step else "-" for b in BACKENDS),
            " / ".join(f"{o.first[b]:.1f}" for b in ("ours", "inductor") if b in o.first),
        )
    console().print(table)
    if options.json:
        options.json.write_text(json.dumps([*map(asdict, each)], indent=1) + "\n")
    return int(any("ours" in o.failures or _is_inexact(o) for o in each))


def _is_inexact(o: Outcome) -> bool:
    return median(o.errors["ours"]) > max(TOLERANCE, _TIMES * median(o.errors["eager"]))


_TIMES = 4
"""How many times eager's error, where that is beyond the tolerance, ours may be."""


def _errors(each: Sequence[float]) -> str:
    """The median, and the largest."""
    return f"{median(each):.0e} ({max(each):.0e})"


if __name__ == "__main__":
    raise SystemExit(main())
