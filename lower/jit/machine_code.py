"""LLVM text to machine code for targets, kept in the cache."""

from functools import cache

import llvmlite
import llvmlite.binding as llvm

from relax_egraph.lower.emit.target import Target, this_architecture
from relax_egraph.lower.jit import compile_text
from relax_egraph.lower.jit.compile_text import OPTIONS, parsed
from relax_egraph.lower.jit.object_cache import ObjectCache, digest


def triple(architecture: str) -> str:
    """LLVM's name for a machine like this one with a processor of `architecture`."""
    default = llvm.get_default_triple()
    if architecture == this_architecture():
        return default
    _, _, system = default.partition("-")
    return f"{architecture}-{system}"


def new_machine(target: Target) -> llvm.TargetMachine:
    """A code generator of LLVM for `target`."""
    return compile_text.new_machine(*machine_of(target))


def machine_of(target: Target) -> tuple[str, str, str]:
    """What `compile_text.new_machine` takes."""
    return triple(target.architecture), target.cpu, target.feature_text


_machine = cache(new_machine)


def cached_object(text: str, target: Target, cache: ObjectCache) -> bytes:
    """The object file of a module, from `cache` if it has been made before.

    Raises ``RuntimeError`` if LLVM does not accept the text.
    """
    key = object_key(text, target)
    data = cache.get(key)
    if data is None:
        data = compiled_object(text, target)
        cache.put(key, data)
    return data


def object_key(text: str, target: Target) -> str:
    """Under what the object of `text` is in the cache."""
    compiler = f"llvmlite {llvmlite.__version__}"
    return digest(text, compiler, target.cpu, target.feature_text, OPTIONS)


def compiled_object(text: str, target: Target) -> bytes:
    """The object file of a module; raises as `cached_object`."""
    return bytes(_machine(target).emit_object(parsed(text, _machine(target))))


def assembly(text: str, target: Target) -> str:
    """The machine code of a module, in assembly language."""
    return _machine(target).emit_assembly(parsed(text, _machine(target)))
