"""What the virtual machine runs: functions, constants, names, code and kernels."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.vm.bytecode import Instruction, decode
from relax_egraph.vm.native.program import Driver

Array: TypeAlias = npt.NDArray[Any]

ConstantValue: TypeAlias = Array | tuple[int, ...] | int | float | str | np.dtype[Any]
"""What the constant pool holds: tensors, shapes, numbers, strings and dtypes."""

Linker: TypeAlias = Callable[["Executable", int | None], Mapping[str, Callable[..., Any]]]
"""Turns the kernels of an executable into callables ``kernel(*arrays, *ints)``, by name.

They may use so many threads; ``None`` leaves the number to the linker.
"""


@dataclass(frozen=True, slots=True)
class VMFunction:
    """A function: its instructions are ``start … end - 1``, its arguments the first registers.

    `param_info` is what each parameter takes, as script writes it, for messages; empty text
    where nothing is said.  A `private` function is not callable from outside.
    """

    name: str
    params: tuple[str, ...]
    num_registers: int
    start: int
    end: int
    param_info: tuple[str, ...]
    private: bool = False


@dataclass(frozen=True, slots=True)
class KernelSet:
    """One object file: `target` names the processor, `symbols` leads from names to symbols."""

    target: str
    code: bytes
    symbols: Mapping[str, str]


@dataclass(slots=True, eq=False)
class Executable:
    """A compiled module.

    `callees` are the names that call instructions refer to, in order of first mention: each is
    one of `functions`, a kernel, or a packed function.  `offsets` says where in `code` each
    instruction begins, `origins` what it computes: the name of the value in the source, or nothing.
    `work` has, for kernels of which it is known, how many arithmetic operations a call does: the
    text of a dimension over ``@0``, ``@1`` …, the integers that it is called with.  `linker` and
    `driver` are not saved.
    """

    functions: tuple[VMFunction, ...]
    constants: tuple[ConstantValue, ...]
    callees: tuple[str, ...]
    code: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    kernels: tuple[KernelSet, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    origins: tuple[str, ...] = ()
    work: Mapping[str, str] = field(default_factory=dict[str, str])
    linker: Linker | None = None
    driver: Driver | None = None

    def __getitem__(self, name: str) -> VMFunction:
        for function in self.functions:
            if function.name == name:
                return function
        known = ", ".join(f.name for f in self.functions) or "none"
        raise KeyError(f"no function {name!r} in the executable; there are: {known}")

    def __eq__(self, other: object) -> bool:
        """Whether both save to the same bytes."""
        return isinstance(other, Executable) and self.to_bytes() == other.to_bytes()

    @property
    def packed_names(self) -> tuple[str, ...]:
        """The callees that are not functions of this executable."""
        own = {f.name for f in self.functions}
        return tuple(name for name in self.callees if name not in own)

    @property
    def kernel_names(self) -> frozenset[str]:
        """The names for which some kernel set has code."""
        return frozenset(name for kernels in self.kernels for name in kernels.symbols)

    def instructions(self, function: VMFunction) -> list[Instruction]:
        """The code of `function`."""
        offsets: list[int] = self.offsets[function.start : function.end].tolist()
        if not offsets:
            return []
        after = function.end < len(self.offsets)
        words = self.code[offsets[0] : self.offsets[function.end] if after else None].tolist()
        return [decode(words, at - offsets[0])[0] for at in offsets]

    def stats(self) -> str:
        """How much there is of everything, in a few lines."""
        arrays = [c for c in self.constants if isinstance(c, np.ndarray)]
        kinds = Counter(map(_kind, self.constants))
        counted = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        functions = ", ".join(f.name for f in self.functions)
        packed = ", ".join(self.packed_names)
        instructions = len(self.offsets)
        return (
            "executable:\n"
            f"  functions ({len(self.functions)}): {functions}\n"
            f"  packed functions ({len(self.packed_names)}): {packed}\n"
            f"  constants ({len(self.constants)}): {counted}"
            f"{'; ' if counted else ''}{sum(a.nbytes for a in arrays)} bytes of tensors\n"
            f"  code: {instructions} instructions, {len(self.code)} words\n"
            f"  kernels: {sum(len(k.symbols) for k in self.kernels)}"
            f" in {sum(len(k.code) for k in self.kernels)} bytes"
        )

    def as_text(self) -> str:
        """The instructions, one a line, function by function."""
        from relax_egraph.vm.printing import as_text

        return as_text(self)

    def as_python(self) -> str:
        """A program that builds this executable's code again through `ExecBuilder`.

        It expects the names ``ExecBuilder`` and ``constants`` (``executable.constants``) and
        leaves the result in ``executable``; kernels and metadata are not in it.
        """
        from relax_egraph.vm.printing import as_python

        return as_python(self)

    def to_bytes(self) -> bytes:
        """The binary form; equal executables have equal bytes."""
        from relax_egraph.vm.binary import to_bytes

        return to_bytes(self)

    def save(self, path: str | Path) -> None:
        """Write the binary form; the file at `path` is the old one or the whole new one."""
        from relax_egraph.vm.binary import save

        save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Executable":
        """Read what `save` wrote; raises `ExecutableError` naming the section that is damaged."""
        from relax_egraph.vm.binary import load

        return load(Path(path))


def _kind(constant: ConstantValue) -> str:
    match constant:
        case np.ndarray():
            return "tensor"
        case tuple():
            return "shape"
        case np.dtype():
            return "dtype"
        case _:
            return type(constant).__name__
