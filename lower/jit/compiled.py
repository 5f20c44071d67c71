"""Compiled kernels as plain data, to be linked into this process or written to a file."""

from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.lower.emit.target import Target


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """The symbol and the signature of a kernel.

    `dtypes` are those of its arrays, of which it writes the last `num_outputs`; `num_scalars`
    integers follow.  Kernels of the same code have the same `symbol`.
    """

    symbol: str
    dtypes: tuple[str, ...]
    num_outputs: int
    num_scalars: int


@dataclass(frozen=True, slots=True)
class CompiledKernels:
    """Object files by symbol, and kernels by name.

    For the target `ANY` the objects are LLVM texts.
    """

    target: Target
    objects: Mapping[str, bytes]
    kernels: Mapping[str, KernelInfo]
