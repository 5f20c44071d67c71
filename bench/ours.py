"""Our system: a module, optimized or in its original form, on a virtual machine."""

import gc
from collections.abc import Sequence
from functools import partial

import numpy as np

import relax_egraph as rx
from bench.program import Array
from bench.system import Bind, Bound

NATIVE = "native"
"""The target of this processor."""

REPEAT = 5
"""The runs of a profile, of which the minimal times count."""


def optimized(module: rx.IRModule, threads: int, target: str = NATIVE) -> Bind:
    """The optimized form of `module`, compiled for `target`."""
    best = rx.optimize(module)
    gc.collect()  # e-graphs are freed by this thread, before peers start others
    return as_written(best, threads, target)


def as_written(module: rx.IRModule, threads: int, target: str = NATIVE) -> Bind:
    """`module` without the optimizer, compiled for `target`."""
    vm = rx.VirtualMachine(rx.build(module, target=target), num_threads=threads)
    main = vm["main"]

    def bind(inputs: Sequence[Array]) -> Bound:
        run = partial(main, *inputs)
        profile = partial(vm.profile, "main", *inputs, repeat=REPEAT)
        return Bound(run, lambda: np.array(run()), profile)

    return bind
