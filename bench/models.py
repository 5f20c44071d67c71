"""``python -m bench.models FOLDER``: networks as lists of layers, optimized and run.

Each ``*.json`` of the folder is optimized within a budget of e-nodes, built in its original form,
optimized, and optimized with weights of fewer bits, and run on one input, on one thread, taking
turns with a loop that reads as much: the results must agree.  The tables show matches of rules,
their gain, and bounds on further gains.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import relax_egraph as rx
from bench.census import Census, census
from bench.limits import limits_of
from bench.model_weights import STORED_WITHIN, Form, Weights, bounds, weights_table
from bench.output import console
from bench.tensat import import_model, read_model
from bench.timing import Run, least
from bench.workloads import Task
from relax_egraph.ir.expr import Function
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.ir.walk import constants_of
from relax_egraph.optimize.explanation import Explanation

MOST_NODES = 50_000
TOLERANCE = 1e-4
"""The largest difference that counts as equal, relative to the largest magnitude."""

MOST_OFF = 0.1
"""The same for weights of fewer bits, by the norm, since errors of layers add up."""

SECONDS = 1.0
"""The measurement time of each run."""

COUNTED = ("matmul", "nn.conv2d", "nn.batch_norm", "permute_dims", "concat", "nn.attention")

Arrays = list[npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one model: `seconds` are of `rx.explain`, those of calls are in `weights`.

    `greedy` is the cost of the program by greedy extraction.
    """

    name: str
    explained: Explanation
    greedy: float
    seconds: float
    before: Census
    after: Census
    weights: Weights
    difference: float

    @property
    def nodes(self) -> int:
        """The e-nodes of all distinct regions."""
        return sum(r.saturation.nodes for r in self.explained.regions)

    @property
    def gain(self) -> float:
        """The speedup of the model."""
        return self.weights.before.seconds / self.weights.after.seconds

    @property
    def failures(self) -> list[str]:
        """The defects of the outcome."""
        failed: list[str] = []
        if self.nodes > MOST_NODES:
            failed.append(f"{self.name}: {self.nodes} e-nodes, over the budget of {MOST_NODES}")
        if not self.difference < TOLERANCE:
            failed.append(f"{self.name}: differs by {self.difference:.1e}, over {TOLERANCE:.0e}")
        if not self.weights.stored.off < MOST_OFF:
            off = self.weights.stored.off
            failed.append(f"{self.name}: fewer bits: off by {off:.1e}, over {MOST_OFF:.0e}")
        return failed


def outcomes_of(folder: Path, seconds: float, out: Console) -> list[Outcome]:
    """The outcomes of all models in `folder`, by name; `out` shows the current one."""
    outcomes: list[Outcome] = []
    for path in sorted(folder.glob("*.json")):
        with out.status(path.stem):
            outcomes.append(outcome_of(path, seconds))
    return outcomes


def outcome_of(path: Path, seconds: float) -> Outcome:
    """Import, optimize and run the model in the file `path` for about `seconds`."""
    module = import_model(read_model(path))
    start = time.perf_counter()
    explained = rx.explain(module)
    optimizing = time.perf_counter() - start
    inputs = _inputs(module)
    stored = rx.optimize(module, tolerance=STORED_WITHIN)
    forms = {"before": module, "after": explained.module, "stored": stored}
    runs = {name: _built(m, inputs) for name, m in forms.items()}
    results = {name: _results(run) for name, run in runs.items()}
    sizes = {name: _weights(m) for name, m in forms.items()}
    loops = {f"reading {name}": _reading(module, size) for name, size in sizes.items()}
    times = least(runs | loops, seconds)
    before, after, small = (
        Form(sizes[n], times[n], times[f"reading {n}"], _off(results[n], results["before"]))
        for n in forms
    )
    return Outcome(
        path.stem,
        explained,
        rx.explain(module, time_limit=0).cost,
        optimizing,
        census(module),
        census(explained.module),
        Weights(before, after, small),
        max(map(_difference, results["before"], results["after"])),
    )


def _weights(module: rx.IRModule) -> int:
    """The bytes of the constants of `module`."""
    constants = constants_of(*(f for _, f in module.relax_functions()))
    return sum(c.data.nbytes for c in constants)


def _reading(module: rx.IRModule, nbytes: int) -> Run:
    """A run that reads `nbytes` bytes."""
    run, _ = limits_of(Task((module,), (), "read", float(nbytes)))["read"]
    return run


def _inputs(module: rx.IRModule) -> Arrays:
    main = module["main"]
    assert isinstance(main, Function)
    random = np.random.default_rng(1)
    infos = [p.struct_info for p in main.params]
    shapes = [i.dims for i in infos if isinstance(i, TensorStructInfo)]
    return [random.standard_normal([int(d) for d in s or ()], np.float32) for s in shapes]


def _built(module: rx.IRModule, inputs: Arrays) -> Run:
    return partial(rx.VirtualMachine(rx.build(module), num_threads=1)["main"], *inputs)


def _results(run: Run) -> Arrays:
    result = run()
    return [np.array(r) for r in (result if isinstance(result, tuple) else (result,))]


def _difference(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> float:
    """The largest difference, relative to the largest magnitude of `a`."""
    return float(np.abs(a - b).max() / np.abs(a).max())


def _off(a: Arrays, b: Arrays) -> float:
    """The largest difference of an output, relative to that of `b`, by the norm."""
    pairs = zip(a, b, strict=True)
    return max(float(np.linalg.norm(x - y) / np.linalg.norm(y)) for x, y in pairs)


def models_table(outcomes: Sequence[Outcome]) -> Table:
    """One line for each model: optimization, cost and run time before and after; their mean."""
    columns = ("model", "regions", "e-nodes", "optimize", "extraction", "cost, ms", "greedy")
    more = ("optimal", "bound", "run, ms", "gain", "difference")
    table = Table(*columns, *more, title="models", title_justify="left")
    for o in outcomes:
        statuses = dict.fromkeys(r.extraction.status for r in o.explained.regions)
        costs = (o.explained.cost_before, o.greedy, o.explained.cost, o.explained.bound)
        table.add_row(
            o.name,
            str(sum(r.uses for r in o.explained.regions)),
            str(o.nodes),
            f"{o.seconds:.2f} s",
            "; ".join(statuses),
            *(f"{cost * 1e3:.3f}" for cost in costs),
            f"{o.weights.before.seconds * 1e3:.2f} → {o.weights.after.seconds * 1e3:.2f}",
            f"{o.gain:.2f}",
            f"{o.difference:.0e}",
        )
    if outcomes:
        mean = geometric_mean([o.gain for o in outcomes])
        table.add_section()
        table.add_row("geometric mean", *[""] * len(columns[1:] + more[:3]), f"{mean:.2f}")
    return table


def operators_table(outcomes: Sequence[Outcome]) -> Table:
    """The kernels and operators of each model before and after."""
    table = Table("model", "kernels", *COUNTED, title="what is left", title_justify="left")
    for o in outcomes:
        counts = [_change(o.before.operators[n], o.after.operators[n]) for n in COUNTED]
        kernels = _change(o.before.kernels.total(), o.after.kernels.total())
        table.add_row(o.name, kernels, *counts)
    return table


def _change(before: int, after: int) -> str:
    return f"{before} → {after}" if before or after else ""


def fired_table(outcomes: Sequence[Outcome]) -> Table:
    """The matches of each rule in each model."""
    names = [o.name for o in outcomes]
    table = Table("rule", *names, title="what fired", title_justify="left")
    rules = dict.fromkeys(rule for o in outcomes for rule in o.explained.rules)
    for rule in sorted(rules):
        table.add_row(rule, *(str(o.explained.rules.get(rule, "")) for o in outcomes))
    return table


def tables_of(outcomes: Sequence[Outcome]) -> tuple[Table, ...]:
    """All tables."""
    weights = weights_table([(o.name, o.weights) for o in outcomes])
    return models_table(outcomes), weights, operators_table(outcomes), fired_table(outcomes)


def main(folder: Path) -> None:
    """Print the tables for all models in `folder`; exits with 1 if a model fails."""
    out = console()
    outcomes = outcomes_of(folder, SECONDS, out)
    if not outcomes:
        raise SystemExit(f"{folder}: no model (*.json)")
    out.print(*tables_of(outcomes))
    for remark in bounds([(o.name, o.weights) for o in outcomes]):
        out.print(remark, highlight=False)
    if failures := [f for o in outcomes for f in o.failures]:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m bench.models FOLDER")
    main(Path(sys.argv[1]))
