"""From a saved executable to one that runs.

    load("model.rxe")        # with its kernels linked

It loads numpy, llvmlite and ml_dtypes, and nothing that only makes executables.  What no kernel
runs, because a shape is known only at run time, calls ``relax.run.<operator>``: the operator's
numpy reference, which an executable that has such calls loads with sympy.
"""

import logging
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relax_egraph.base.parameters import FLAG, NAME, PATH, Kind, optional, takes
from relax_egraph.lower.jit.kernel_sets import fitting_kernels, head_of
from relax_egraph.lower.jit.linking import link as link_kernels
from relax_egraph.lower.runtime.driver_link import driver
from relax_egraph.lower.runtime.threads import thread_count, thread_pool
from relax_egraph.vm.arguments import convert
from relax_egraph.vm.executable import Executable

if TYPE_CHECKING:
    from relax_egraph.ir.operators import Operators

LOG = logging.getLogger(__name__)

_OPERATORS = "relax.run."

_DIGEST = Kind(
    "a SHA-256 digest, 64 hexadecimal digits",
    NAME.has_type,
    lambda text: bool(re.fullmatch("[0-9a-fA-F]{64}", text)),
)


@takes(path=PATH, digest=optional(_DIGEST), mapped=FLAG)
def load(path: str | Path, digest: str | None = None, *, mapped: bool = True) -> Executable:
    """Read a saved executable; see `Executable.load`.

    Raises `ExecutableError` if it is damaged; that no kernels are for this processor is said by the
    machine that is to run it.
    """
    executable = Executable.load(path, digest, mapped=mapped)
    LOG.debug("%s: kernels for %s", path, [k.target for k in executable.kernels] or "no processor")
    for kernels in executable.kernels:
        head_of(kernels)
    return replace(executable, linker=link, driver=driver())


def link(
    executable: Executable, num_threads: int | None = None, operators: "Operators | None" = None
) -> Mapping[str, Callable[..., Any]]:
    """The kernels of `executable` as callables, and the operators it calls at run time.

    Operators are those in force, or `operators`.  The kernels share `num_threads` threads, the
    caller's among them; see `thread_count`.  Raises
    `ExecutableError` if none are for this processor, or if objects are damaged.
    """
    count = thread_count(num_threads)
    linked: dict[str, Callable[..., Any]] = {
        name: run
        for name in executable.packed_names
        if (run := _at_run_time(name, operators)) is not None
    }
    if executable.kernels:
        linked.update(link_kernels(fitting_kernels(executable.kernels), thread_pool(count)))
    return linked


def _at_run_time(name: str, operators: "Operators | None") -> Callable[..., Any] | None:
    """The packed function `name`, if it is an operator, giving what a machine has."""
    if not name.startswith(_OPERATORS):
        return None
    from relax_egraph.ir.run_time import at_run_time  # all operators, and sympy

    with operators.in_force() if operators else nullcontext():
        run = at_run_time(name)
    return run and (lambda *args: convert(f"the result of {name!r}", run(*args)))
