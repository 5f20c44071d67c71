"""Compilation of LLVM text to machine code for a target, with a cache."""

from functools import cache

import llvmlite
import llvmlite.binding as llvm

from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import compile_text
from relax_egraph.lower.jit.compile_text import OPTIONS, parsed
from relax_egraph.lower.jit.object_cache import ObjectCache, digest
from relax_egraph.lower.jit.triples import triple_of


def new_machine(target: Target) -> llvm.TargetMachine:
    """A code generator of LLVM for `target`."""
    return compile_text.new_machine(*machine_of(target))


def machine_of(target: Target) -> tuple[str, str, str]:
    """The arguments of `compile_text.new_machine` for `target`."""
    return triple_of(target), target.cpu, target.feature_text


_machine = cache(new_machine)


def cached_object(text: str, target: Target, cache: ObjectCache) -> bytes:
    """The object file of a module, from `cache` if possible.

    Raises ``RuntimeError`` if LLVM rejects the text.
    """
    key = object_key(text, target)
    data = cache.get(key)
    if data is None:
        data = compiled_object(text, target)
        cache.put(key, data)
    return data


def object_key(text: str, target: Target) -> str:
    """The cache key of the object of `text`."""
    compiler = f"llvmlite {llvmlite.__version__}"
    return digest(text, compiler, *machine_of(target), OPTIONS)


def compiled_object(text: str, target: Target) -> bytes:
    """The object file of a module; raises like `cached_object`."""
    return bytes(_machine(target).emit_object(parsed(text, _machine(target))))


def assembly(text: str, target: Target) -> str:
    """The assembly language of a module."""
    return _machine(target).emit_assembly(parsed(text, _machine(target)))
