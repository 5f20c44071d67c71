"""torch: its functions one after the other, and what its compiler makes of them."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bench.program import Array, NotRunnable, Operators, as_function, plain, program_of
from bench.system import Bind, Bound
from relax_egraph.ir.module import IRModule

torch: Any = import_module("torch")  # it may not be there when types are checked
functional: Any = import_module("torch.nn.functional")


def compiled(module: IRModule, threads: int) -> Bind:
    """`module` as a function of tensors, run as it is."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    function = as_function(program_of(module), _OPERATORS, torch.from_numpy)
    return partial(_bind, function)


def compiled_by_inductor(module: IRModule, threads: int) -> Bind:
    """`module` through ``torch.compile``, which needs a compiler of C++."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise NotRunnable("torch.compile needs a compiler of C++")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    function = as_function(program_of(module), _OPERATORS, torch.from_numpy)
    return partial(_bind, torch.compile(function))


def _bind(function: Callable[..., Any], inputs: Sequence[Array]) -> Bound:
    run = partial(function, *map(torch.from_numpy, inputs))
    return Bound(run, lambda: np.array(run()))


def _softmax(*, axis: int) -> Callable[[Any], Any]:
    return partial(torch.softmax, dim=axis)


def _layer_norm(*, epsilon: float, **_: object) -> Callable[..., Any]:
    def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
        return functional.layer_norm(x, gamma.shape, gamma, beta, epsilon)

    return layer_norm


def _rms_norm(*, epsilon: float, **_: object) -> Callable[..., Any]:
    def rms_norm(x: Any, weight: Any) -> Any:
        return functional.rms_norm(x, weight.shape, weight, epsilon)

    return rms_norm


_OPERATORS: Operators = {
    "add": plain(torch.add),
    "multiply": plain(torch.mul),
    "matmul": plain(torch.matmul),
    "tanh": plain(torch.tanh),
    "sigmoid": plain(torch.sigmoid),
    "nn.relu": plain(torch.relu),
    "nn.gelu": plain(functional.gelu),
    "nn.softmax": _softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
}
