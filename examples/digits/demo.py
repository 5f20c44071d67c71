"""Recognise 1,797 handwritten digits: from rules in ``.egg`` files to machine code.

Run from the top of the repository: ``python -m examples.digits.demo``.
"""

import os
import time
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy, like us, on one thread; read when it loads

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

import relax_egraph as rx
from examples.digits.model import Digits, build_model

ROUNDS = 200
SCRIPT_WIDTH = 100
"""Columns that a printed module takes."""


def best_seconds(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The least thread CPU time of a call, in seconds, over `rounds` calls after a warm-up."""
    run()
    times: list[float] = []
    for _ in range(rounds):
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return min(times)


def main() -> int:
    """Print the whole run; the exit status is 1 if a prediction differs from numpy's."""
    console = Console(width=max(Console().width, SCRIPT_WIDTH))
    digits = Digits.load()
    module = build_model(digits.weights)

    console.rule("before")
    console.print(Syntax(module.script(), "python", background_color="default"))

    report = rx.explain(module)
    console.rule("after optimize")
    console.print(Syntax(report.module.script(), "python", background_color="default"))
    console.print(report.table())

    executable = rx.build(report.module)
    machine = rx.VirtualMachine(executable)
    predicted = machine["main"](digits.images).argmax(axis=1)
    expected = digits.logits(digits.images).argmax(axis=1)
    same = bool((predicted == expected).all())

    console.rule("run")
    accuracy = (predicted == digits.labels).mean()
    agreement = "equal to numpy's on every image" if same else "DIFFERENT from numpy's"
    console.print(f"accuracy {accuracy:.4f} on {len(predicted)} images; predictions {agreement}")

    table = Table("images per call", "relax-egraph", "numpy", "numpy / relax-egraph")
    for n in (1, len(digits.images)):
        x = np.ascontiguousarray(digits.images[:n])
        ours = best_seconds(lambda x=x: machine["main"](x))
        theirs = best_seconds(lambda x=x: digits.logits(x))
        times = (f"{seconds * 1e6:.1f} µs" for seconds in (ours, theirs))
        table.add_row(str(n), *times, f"{theirs / ours:.2f}")
    console.print(table)
    console.print("(least CPU time of a call, one thread each)")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
