"""Compiled kernels as plain data: to be linked in this process, or written to a file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.errors import ExecutableError
from relax_egraph.ir.dtypes import DTYPES
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
    """Object files by what they define, and kernels by name."""

    target: Target
    objects: Mapping[str, bytes]
    kernels: Mapping[str, KernelInfo]

    def to_bytes(self) -> bytes:
        """What `from_bytes` reads."""
        head = {
            "cpu": self.target.cpu,
            "features": sorted(self.target.features),
            "vector_bits": self.target.vector_bits,
            "objects": [[name, len(data)] for name, data in self.objects.items()],
            "kernels": [
                [name, k.symbol, list(k.dtypes), k.num_outputs, k.num_scalars]
                for name, k in self.kernels.items()
            ],
        }
        text = json.dumps(head, separators=(",", ":")).encode()
        return b"".join([len(text).to_bytes(8, "little"), text, *self.objects.values()])

    @staticmethod
    def from_bytes(data: bytes) -> "CompiledKernels":
        """The kernels that were written; raises `ExecutableError` on anything else.

        Only the form is checked: machine code runs as it is, so trust where `data` is from.
        """
        try:
            size = int.from_bytes(data[:8], "little")
            head = json.loads(data[8 : 8 + size])
            at, objects = 8 + size, dict[str, bytes]()
            for name, length in head["objects"]:
                objects[str(name)] = data[at : at + length]
                at += length
            target = Target(head["cpu"], frozenset(head["features"]), head["vector_bits"])
            kernels = {
                str(name): KernelInfo(symbol, tuple(dtypes), outputs, scalars)
                for name, symbol, dtypes, outputs, scalars in head["kernels"]
            }
        except (ValueError, KeyError, TypeError) as error:
            raise ExecutableError(f"compiled kernels do not read: {error}") from error
        for name, info in kernels.items():
            if info.symbol not in objects or not set(info.dtypes) <= set(DTYPES):
                raise ExecutableError(f"compiled kernel {name} is damaged")
        if at != len(data):
            raise ExecutableError(f"compiled kernels are {len(data)} bytes: needs {at}")
        return CompiledKernels(target, objects, kernels)
