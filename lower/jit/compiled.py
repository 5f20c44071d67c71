"""Compiled kernels as plain data: to be linked in this process, or written to a file."""

from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.lower.emit.target import Target


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """Where a kernel's code is, and what it takes.

    `dtypes` are those of its arrays, the last `num_outputs` of which it writes; `num_scalars`
    integers follow.  Kernels of the same code have the same `symbol`.
    """

    symbol: str
    dtypes: tuple[str, ...]
    num_outputs: int
    num_scalars: int


@dataclass(frozen=True, slots=True)
class CompiledKernels:
    """Object files by what they define, and kernels by name.

    For the target `ANY` it is LLVM texts in place of objects.
    """

    target: Target
    objects: Mapping[str, bytes]
    kernels: Mapping[str, KernelInfo]
