"""Compilation of loop functions to machine code, with a cache."""

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from relax_egraph.errors import NotLowerable
from relax_egraph.lower.codegen import generate, stream
from relax_egraph.lower.emit.module_text import I64, PTR, IntrinsicEmitter, Module
from relax_egraph.lower.emit.target import ANY, Target, host
from relax_egraph.lower.jit.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.jit.machine_code import assembly, cached_object, compiled_object
from relax_egraph.lower.jit.object_cache import ObjectCache, default_cache, digest
from relax_egraph.lower.jit.version import compiler_version
from relax_egraph.tir.analysis import structural_key
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic

LOG = logging.getLogger(__name__)

Intrinsics = Mapping[str, IntrinsicEmitter]

_NO_INTRINSICS: Intrinsics = {}


def compile_kernels(
    functions: Mapping[str, PrimFunc],
    target: Target | None = None,
    intrinsics: Intrinsics = _NO_INTRINSICS,
    cache: ObjectCache | None = None,
) -> CompiledKernels:
    """Compile scheduled functions for `target`, by default this processor; for `ANY`, to text.

    Functions of the same structure, or of the same code, are compiled once.  Raises `NotLowerable`
    for functions without machine code.
    """
    compiler = _Compiler(target or host(), intrinsics, cache or default_cache())
    kernels: dict[str, KernelInfo] = {}
    symbols: dict[Hashable, str] = {}
    for name, function in functions.items():
        key = code_key(function)
        if key not in symbols:
            try:
                symbols[key] = compiler.add(name, function)
            except NotLowerable as error:
                raise NotLowerable(f"{name}: {error}") from error
        dtypes = tuple(b.dtype for b in function.params)
        scalars = len(function.symbols)
        kernels[name] = KernelInfo(symbols[key], dtypes, function.num_outputs, scalars)
    compiler.cache.trim()
    return CompiledKernels(compiler.target, compiler.objects, kernels)


@lru_cache(1 << 10)
def code_key(function: PrimFunc) -> Hashable:
    """A key that is equal for scheduled functions of the same code."""
    attrs = {k: v for k, v in function.attrs.items() if k == stream.ATTRIBUTE}
    return structural_key(replace(function, attrs=attrs))


@dataclass(slots=True)
class _Compiler:
    """A compilation for `target`: the `objects` so far, by symbol.

    The cache key of an object is the loop function, or the name of the micro-kernel, with the
    version of this compiler; if the version does not cover everything, it is the LLVM text.
    """

    target: Target
    intrinsics: Intrinsics
    cache: ObjectCache
    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def add(self, name: str, function: PrimFunc) -> str:
        """Add the objects of `function` and of the intrinsics it calls; returns its symbol.

        The log has it by its `name`.
        """
        calls = [s for s in statements(function.body) if isinstance(s, TensorIntrinsic)]
        version_covers = all(_is_versioned(self.intrinsics.get(c.name)) for c in calls)
        version = compiler_version(self.target) if version_covers else None
        key = version and digest("kernel", version, repr(code_key(function)))
        entry = self.cache.get(key) if key else None
        LOG.debug("%s: %s", name, "compiled" if entry is None else "read from the cache")
        if entry is None:
            symbol, data = self._kernel(function, calls, cache_text=key is None)
            if key:
                self.cache.put(key, symbol.encode() + b"\n" + data)
        else:
            line, _, data = entry.partition(b"\n")
            symbol = line.decode()
        self.objects[symbol] = data
        for called in dict.fromkeys(call.name for call in calls):
            if called not in self.objects:
                self.objects[called] = self._intrinsic(called, version)
        return symbol

    def _kernel(
        self, function: PrimFunc, calls: Sequence[TensorIntrinsic], *, cache_text: bool
    ) -> tuple[str, bytes]:
        text = llvm_text(function, self.target, self.intrinsics)
        for call in calls:
            _check_call(call, _emitted(self.intrinsics[call.name], self.target))
        symbol = f"kernel_{digest(text)[:24]}"
        if symbol in self.objects:
            return symbol, self.objects[symbol]
        return symbol, self._object(text.replace("@kernel(", f"@{symbol}("), cache_text=cache_text)

    def _intrinsic(self, name: str, version: str | None) -> bytes:
        key = version and digest("intrinsic", version, name)
        data = self.cache.get(key) if key else None
        LOG.debug("%s: %s", name, "compiled" if data is None else "read from the cache")
        if data is None:
            module = _emitted(self.intrinsics[name], self.target)
            data = self._object(str(module), cache_text=key is None)
            if key:
                self.cache.put(key, data)
        return data

    def _object(self, text: str, *, cache_text: bool) -> bytes:
        """The object of `text`; `cache_text` caches it by the text."""
        if self.target == ANY:
            return text.encode()
        if cache_text:
            return cached_object(text, self.target, self.cache)
        return compiled_object(text, self.target)


def _is_versioned(emitter: IntrinsicEmitter | None) -> bool:
    """Whether `compiler_version` covers the sources of `emitter`."""
    return emitter is not None and emitter.__module__.startswith("relax_egraph.lower.intrinsics.")


def _check_call(call: TensorIntrinsic, module: Module) -> None:
    params = (PTR,) * len(call.buffers) + (I64,) * len(call.scalars)
    if module.signatures.get(call.name) != params:
        raise NotLowerable(
            f"{call.name} of {len(call.buffers)} buffers and {len(call.scalars)} scalars: "
            f"takes ({', '.join(map(str, module.signatures.get(call.name, ())))})"
        )


@lru_cache(maxsize=64)
def _emitted(emitter: IntrinsicEmitter, target: Target) -> Module:
    module = Module(target)
    emitter(module, target)
    return module


def llvm_text(
    function: PrimFunc, target: Target | None = None, intrinsics: Intrinsics = _NO_INTRINSICS
) -> str:
    """The LLVM module of a scheduled function, which is named ``kernel``."""
    return str(generate(function, "kernel", target or host(), intrinsics))


def emit_assembly(
    function: PrimFunc, target: Target | None = None, intrinsics: Intrinsics = _NO_INTRINSICS
) -> str:
    """The assembly language of a scheduled function."""
    target = target or host()
    return assembly(llvm_text(function, target, intrinsics), target)
