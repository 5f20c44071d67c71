"""The speed of parsing, printing and building modules: bindings per second."""

import time
from collections.abc import Callable

from rich.table import Table

from bench.transformer import Sizes, encoder
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.walk import bindings_of
from relax_egraph.script.parser import parse
from relax_egraph.script.printer import print_with_constants

LAYERS = 48
ROUNDS = 3


def bindings_in(module: IRModule) -> int:
    """The number of bindings in the functions of `module`, without those in branches."""
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    return sum(len(list(bindings_of(f.body))) for f in functions)


def cpu(run: Callable[[], object]) -> float:
    """The minimal thread CPU time of a few runs."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return min(times)


def language_table() -> Table:
    """Building with inference, printing and parsing an encoder; both modules are equal."""
    module = encoder(Sizes(LAYERS))
    text, constants = print_with_constants(module)
    assert_structural_equal(parse(text, constants=constants), module)
    count = bindings_in(module)
    table = Table(f"{LAYERS} encoder layers, {count} bindings", "seconds", "bindings/s")
    for name, run in (
        ("build, normalise and infer", lambda: encoder(Sizes(LAYERS))),
        ("print", lambda: print_with_constants(module)),
        ("parse", lambda: parse(text, constants=constants)),
    ):
        seconds = cpu(run)
        table.add_row(name, f"{seconds:.3f}", f"{count / seconds:,.0f}")
    return table
