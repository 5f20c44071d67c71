"""Scripts of the documents: read, printed, read back; built as they are and optimized."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph import VirtualMachine, build, optimize, parse
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.script import print_module

Array = npt.NDArray[Any]
Packed = Mapping[str, Callable[..., Any]]


def read(text: str) -> IRModule:
    """The module of a script; what it prints means the same, and prints the same."""
    module = parse(text)
    assert_well_formed(module)
    printed = print_module(module, show_meta=True)
    assert_structural_equal(parse(printed), module)
    assert print_module(parse(printed), show_meta=True) == printed
    return module


def machines(module: IRModule, packed: Packed | None = None) -> list[VirtualMachine]:
    """Two machines: one runs the module as it is, one the optimized module."""
    return [VirtualMachine(build(m), packed) for m in (module, optimize(module))]


def floats(*shape: int) -> Array:
    """Random float32, the same at each call."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def flatten(x: Array, out: Array) -> None:
    """All elements of `x`, in order, to `out`."""
    out[...] = x.reshape(-1)
