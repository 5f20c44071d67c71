"""Kernel sets of executables: their conversion from compiled kernels, and their selection.

The set for `ANY` holds LLVM texts, compressed together; they are compiled if no other set fits this
processor, see `rebuild.py`.
"""

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

from relax_egraph.errors import ExecutableError
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.lower.emit.target import ANY, Target, host
from relax_egraph.lower.jit.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.jit.objects import symbols_of
from relax_egraph.lower.jit.process import has_function
from relax_egraph.lower.jit.rebuild import rebuilt
from relax_egraph.lower.runtime.workspace import WORKSPACE_SYMBOLS
from relax_egraph.vm.executable import KernelSet
from relax_egraph.vm.json_table import json_table

MOST_TEXT = 1 << 30
"""The maximal bytes of LLVM text, so that a damaged file cannot exhaust the memory."""

_MOST_ARGUMENTS = 1 << 12
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a kernel set."""

    target: Target
    sizes: Mapping[str, int]
    kernels: Mapping[str, KernelInfo]


def kernel_set(compiled: CompiledKernels) -> KernelSet:
    """The kernel set of `compiled`, which `compiled_kernels` reads."""
    target, objects = compiled.target, tuple(compiled.objects.values())
    head = {
        "system": target.system,
        "target": [*(target.cpu, sorted(target.features), target.vector_bits, target.architecture)],
        "objects": [[name, len(data)] for name, data in compiled.objects.items()],
        "kernels": [
            [name, k.symbol, k.dtypes, k.num_outputs, k.num_scalars]
            for name, k in compiled.kernels.items()
        ],
    }
    if target == ANY:
        objects = (zlib.compress(b"".join(objects)),)
    code = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    symbols = {name: info.symbol for name, info in compiled.kernels.items()}
    return KernelSet(target.cpu, code, symbols, objects)


def compiled_kernels(kernels: KernelSet) -> CompiledKernels:
    """The compiled kernels of a kernel set; raises `ExecutableError` if it is damaged.

    Only the form of objects is checked: machine code runs as it is, so its source must be trusted.
    """
    head = head_of(kernels)
    contents = _texts(kernels, head) if head.target == ANY else kernels.objects
    if list(map(len, contents)) != list(head.sizes.values()):
        raise _fault(kernels, "the sizes of objects differ from the head")
    if head.target != ANY:
        _check_symbols(kernels, head)
    objects = dict(zip(head.sizes, contents, strict=True))
    return CompiledKernels(head.target, objects, head.kernels)


def fitting_kernels(kernel_sets: Sequence[KernelSet]) -> CompiledKernels:
    """The kernels of the set that fits this processor best, or those of `ANY`, compiled.

    The best set is the one for this processor, else the one with the widest vectors, then the most
    features.  Raises `ExecutableError`, which lists what each set needs, if none fits.
    """
    heads = [head_of(kernels) for kernels in kernel_sets]
    reasons = {k: _lacking(head) for k, head in enumerate(heads)}
    fitting = [k for k, lacking in reasons.items() if not lacking]
    if fitting:
        best = max(fitting, key=lambda k: _fit(heads[k].target))
        return compiled_kernels(kernel_sets[best])
    for kernels, head in zip(kernel_sets, heads, strict=True):
        if head.target == ANY:
            return rebuilt(compiled_kernels(kernels), host())
    needs = "; ".join(f"{heads[k].target.cpu} needs {why}" for k, why in reasons.items())
    raise ExecutableError(
        f"no kernels for this processor, {host().cpu}: {needs}; build for other targets, "
        "or with portable=True"
    )


def head_of(kernels: KernelSet) -> Head:
    """The header of `kernels`; raises `ExecutableError` if it is invalid."""
    match json_table("kernels", kernels.code):
        case {
            "system": str(system),
            "target": [str(cpu), [*features], 128 | 256 | 512 as bits, str(architecture)],
            "objects": [*objects],
            "kernels": [*entries],
        } if cpu == kernels.target and all(isinstance(f, str) for f in features):
            target = Target(cpu, frozenset(features), bits, architecture, system)
        case _:
            raise _fault(kernels, "the head is invalid")
    sizes: dict[str, int] = {}
    for item in objects:
        match item:
            case [str(name), size] if _is_count(size) and _SYMBOL.fullmatch(name):
                sizes[name] = size
            case _:
                raise _fault(kernels, f"{item!r:.60} is not an object")
    infos = {name: info for name, info in (_kernel(kernels, item) for item in entries)}
    if len(sizes) != len(objects) or len(infos) != len(entries):
        raise _fault(kernels, "a name is duplicated")
    if {name: info.symbol for name, info in infos.items()} != kernels.symbols:
        raise _fault(kernels, "the symbols differ from the head")
    if missing := sorted({info.symbol for info in infos.values()} - sizes.keys()):
        raise _fault(kernels, f"{missing[0]} is not defined")
    return Head(target, sizes, infos)


def _kernel(kernels: KernelSet, entry: Any) -> tuple[str, KernelInfo]:
    match entry:
        case [str(name), str(symbol), [*dtypes], outputs, scalars] if (
            set(map(type, dtypes)) <= {str}
            and set(dtypes) <= set(DTYPES)
            and _is_count(outputs)
            and _is_count(scalars)
            and outputs <= len(dtypes)
            and len(dtypes) + scalars <= _MOST_ARGUMENTS
        ):
            return name, KernelInfo(symbol, tuple(dtypes), outputs, scalars)
        case _:
            raise _fault(kernels, f"{entry!r:.60} is not a kernel")


def _lacking(head: Head) -> str:
    """The features that code for `head` needs and this system lacks; empty if it runs here."""
    if head.target == ANY:
        return "to be compiled"
    here = host()
    if not _is_of(here, head.target):
        return f"{head.target.system} on {head.target.architecture}"
    return ", ".join(sorted(here.lacks(head.target)))


def _fit(target: Target) -> tuple[bool, int, int]:
    return target.cpu == host().cpu, target.vector_bits, len(target.features)


def _check_symbols(kernels: KernelSet, head: Head) -> None:
    """Raise `ExecutableError` unless each object defines its symbol and all needed symbols exist.

    LLVM's linker would search for them in the objects and in this process.
    """
    defined: set[str] = set()
    needed: set[str] = set()
    for name, data in zip(head.sizes, kernels.objects, strict=True):
        symbols = symbols_of(data, head.target)
        if name not in symbols.defined:
            raise _fault(kernels, f"the object {name} does not define its symbol")
        defined |= symbols.defined
        needed |= symbols.needed
    if _is_of(host(), head.target):
        needed -= defined | WORKSPACE_SYMBOLS
        if missing := sorted(name for name in needed if not has_function(name)):
            raise _fault(kernels, f"{', '.join(missing)} is not defined")


def _is_of(one: Target, other: Target) -> bool:
    """Whether both are of one system and architecture."""
    return (one.system, one.architecture) == (other.system, other.architecture)


def _texts(kernels: KernelSet, head: Head) -> Sequence[bytes]:
    whole = sum(head.sizes.values())
    if len(kernels.objects) != 1 or whole > MOST_TEXT:
        raise _fault(kernels, "the texts are too long")
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(kernels.objects[0], whole + 1)
    except zlib.error as error:
        raise _fault(kernels, f"the texts do not unpack: {error}") from None
    if len(text) != whole or not reader.eof or reader.unused_data:
        raise _fault(kernels, "the sizes of texts differ from the head")
    return [text[start:end] for start, end in pairwise(accumulate(head.sizes.values(), initial=0))]


def _fault(kernels: KernelSet, what: str) -> ExecutableError:
    return ExecutableError(f"section kernels: kernels for {kernels.target!r:.40}: {what}")


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48
