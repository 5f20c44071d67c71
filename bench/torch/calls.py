"""Calls through torch.compile: microseconds beyond the kernels, copies, memory, compilations.

Run from the top of the repository: ``python -m bench.torch.calls [--calls N]``.
"""

import argparse
import resource
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from rich.table import Table

from bench.output import console
from bench.timing import least
from relax_egraph.frontends.torch_backend import compiling
from relax_egraph.frontends.torch_backend.backend import relax_egraph
from relax_egraph.frontends.torch_backend.program import Program


def one(x: torch.Tensor) -> torch.Tensor:
    """A tensor in, a tensor out."""
    return torch.relu(x) * 2


def three(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Three in, two out."""
    return torch.relu(x) * y + z, x * 3


FUNCTIONS: tuple[tuple[Callable[..., Any], int], ...] = ((one, 1), (three, 3))


@contextmanager
def noting() -> Generator[list[Program]]:
    """A list of the programs that are compiled within the block."""
    found: list[Program] = []
    built: Callable[..., Program] = vars(compiling)["_built"]

    def noted(*args: Any) -> Program:
        found.append(built(*args))
        return found[-1]

    torch.compiler.reset()
    with patch.object(compiling, "_built", noted):
        yield found


def program_of(function: Callable[..., Any], inputs: list[torch.Tensor]) -> tuple[Program, Any]:
    """What `function` becomes, and the compiled function."""
    with noting() as found:
        call = torch.compile(function, backend=relax_egraph)
        call(*inputs)
    return found[-1], call


def times() -> Table:
    """Microseconds of a call on 16 floats, by layer."""
    columns = ("machine", "program", "beyond it", "torch.compile", "eager", "inductor")
    table = Table("function", *columns, title="µs a call on 16 floats", title_justify="left")
    for function, count in FUNCTIONS:
        inputs = [torch.randn(4, 4) for _ in range(count)]
        program, call = program_of(function, inputs)
        (main,) = vars(program)["_mains"].values()
        arrays = [each.numpy() for each in inputs]
        inductor = torch.compile(function, backend="inductor")
        inductor(*inputs)
        runs = {
            "machine": lambda m=main, a=arrays: m(*a),
            "program": lambda p=program, i=inputs: p(list(i)),
            "compile": lambda c=call, i=inputs: c(*i),
            "eager": lambda f=function, i=inputs: f(*i),
            "inductor": lambda c=inductor, i=inputs: c(*i),
        }
        micro = {name: 1e6 * seconds for name, seconds in least(runs, 0.5).items()}
        beyond = micro["program"] - micro["machine"]
        figures = (micro["machine"], micro["program"], beyond, *list(micro.values())[2:])
        table.add_row(function.__name__, *(f"{figure:.2f}" for figure in figures))
    return table


def growth(calls: int) -> int:
    """The bytes by which `calls` calls let the process grow, after a hundredth of them."""
    inputs = [torch.randn(64, 64) for _ in range(3)]
    _, call = program_of(three, inputs)

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    for _ in range(calls // 100):
        call(*inputs)
    before = peak()
    for _ in range(calls):
        call(*inputs)
    return peak() - before


def compilations(sizes: int) -> int:
    """How often a layer is compiled that is called at `sizes` sizes; the results are compared."""
    layer = torch.nn.Linear(16, 16)
    with noting() as found:
        call = torch.compile(layer, backend=relax_egraph, dynamic=True)
        for size in range(2, 2 + sizes):
            torch.testing.assert_close(call(torch.ones(size, 16)), layer(torch.ones(size, 16)))
    return len(found)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        out = console()
        out.print(times())
        out.print(f"{options.calls} calls let the process grow by {growth(options.calls)} bytes")
        out.print(f"50 sizes are {compilations(50)} compilation")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
