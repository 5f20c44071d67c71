"""What the virtual machine runs: functions, constants, names, code and kernels."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import UnknownFunction
from relax_egraph.ir.message import counted, some
from relax_egraph.vm.bytecode import Instruction, decode
from relax_egraph.vm.interfaces import Interface, interfaces_of
from relax_egraph.vm.native.program import Driver
from relax_egraph.vm.promises import KernelPromise, promises_of

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

    `param_info` is what each parameter takes, as script writes it: for messages, and to tell
    numbers and shapes from arrays of them; empty text where nothing is said.  A `private` function
    is not callable from outside.
    """

    name: str
    params: tuple[str, ...]
    num_registers: int
    start: int
    end: int
    param_info: tuple[str, ...]
    private: bool = False


def function_among(functions: Sequence[VMFunction], name: str) -> VMFunction:
    """The function `name` of an executable; raises `UnknownFunction`."""
    for function in functions:
        if function.name == name:
            return function
    raise UnknownFunction.among(name, "in the executable", (f.name for f in functions))


@dataclass(frozen=True, slots=True)
class KernelSet:
    """All kernels for one processor, which `target` names; `symbols` leads from names to symbols.

    What is in `code` is known to who made it, as is what the `objects` are that it refers to.
    """

    target: str
    code: bytes
    symbols: Mapping[str, str]
    objects: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        kernels = counted(len(self.symbols), "kernel")
        return f"<KernelSet: {kernels} for {self.target}, {counted(self.size, 'byte')}>"

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.code) + sum(map(len, self.objects))


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
        return function_among(self.functions, name)

    def __repr__(self) -> str:
        kernels = counted(len(self.kernel_names), "kernel")
        targets = f" for {some([k.target for k in self.kernels])}" * bool(self.kernels)
        code = counted(len(self.offsets), "instruction")
        return f"<Executable: {self.signatures}; {code}, {kernels}{targets}>"

    def __str__(self) -> str:
        return self.stats()

    def __eq__(self, other: object) -> bool:
        """Whether both save to the same bytes."""
        if not isinstance(other, Executable):
            return NotImplemented
        from relax_egraph.vm.binary import same

        return same(self, other)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled by `to_bytes`, so that tensors are aligned and read-only again."""
        from relax_egraph.vm.binary import restored

        return restored, (self.to_bytes(), self.linker, self.driver)

    @property
    def signatures(self) -> str:
        """The functions that can be called from outside, and their parameters, in a line."""
        public = [f for f in self.functions if not f.private]
        return some([f"{f.name}({some(f.params)})" for f in public]) or "no function"

    @property
    def promises(self) -> Mapping[str, KernelPromise]:
        """What the optimizer promised of kernels, by their names."""
        return promises_of(self.metadata)

    @property
    def interfaces(self) -> Mapping[str, Interface]:
        """What public functions return, and where their plans change, by their names."""
        return interfaces_of(self.metadata)

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
            f"  kernels: {len(self.kernel_names)} in {sum(k.size for k in self.kernels)} bytes"
            f"{_by_target(self.kernels)}"
            f"{_broken(self.promises)}"
        )

    def as_text(self, *, analyses: bool = False) -> str:
        """The instructions, one a line, function by function, with what they compute.

        A jump shows the number of the instruction that it leads to.  With `analyses` it is said,
        too, which registers hold a value for the last time, and which calls are tail calls.
        """
        from relax_egraph.vm.printing import as_text

        return as_text(self, analyses=analyses)

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
    def load(path: str | Path, digest: str | None = None, *, mapped: bool = True) -> "Executable":
        """Read what `save` wrote; raises `ExecutableError` naming the section that is damaged.

        Nothing of the file runs, and all that code depends on is checked and copied first.  What
        the code computes is not checked: an executable is as trusted as a program, its kernels are
        machine code.  With a `digest`, the SHA-256 of the file in hexadecimal digits, another file
        is refused.

        Tensors stay in the file: they are read-only views of a map of it, whose pages processes
        share.  `save` leaves the maps of an old file alone; who writes to the file in place changes
        the tensors, and who cuts it off ends the processes that read beyond.  Where others may do
        that, say that the file is not to be `mapped`: it is read into memory.
        """
        from relax_egraph.vm.binary import load

        return load(Path(path), digest, mapped=mapped)


def _by_target(kernels: tuple[KernelSet, ...]) -> str:
    return f": {', '.join(f'{k.target} {k.size}' for k in kernels)}" if kernels else ""


def _broken(promises: Mapping[str, KernelPromise]) -> str:
    broken = [f"{n} ({p.anchor}, is {p.schedule})" for n, p in promises.items() if not p.is_kept]
    return f"\n  kernels that are not as promised ({len(broken)}): {some(broken)}" if broken else ""


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
