"""Loop functions to machine code, each different one once, and machine code to callables."""

from collections.abc import Hashable, Mapping
from functools import lru_cache

from relax_egraph.errors import NotLowerable
from relax_egraph.lower.codegen import generate
from relax_egraph.lower.compiled import CompiledKernels, KernelInfo
from relax_egraph.lower.link import Kernel, address_of, link
from relax_egraph.lower.machine_code import assembly, cached_object
from relax_egraph.lower.module_text import I64, PTR, IntrinsicEmitter, Module
from relax_egraph.lower.object_cache import ObjectCache, default_cache, digest
from relax_egraph.lower.target import Target, host
from relax_egraph.tir.analysis import structural_key
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic

__all__ = [
    "CompiledKernels",
    "Kernel",
    "address_of",
    "compile_kernels",
    "emit_assembly",
    "link",
    "llvm_text",
]

Intrinsics = Mapping[str, IntrinsicEmitter]

_NO_INTRINSICS: Intrinsics = {}


def compile_kernels(
    functions: Mapping[str, PrimFunc],
    target: Target | None = None,
    intrinsics: Intrinsics = _NO_INTRINSICS,
    cache: ObjectCache | None = None,
) -> CompiledKernels:
    """Compile scheduled functions for `target`, by default this processor.

    Functions of the same structure, or of the same code, are compiled once.  Raises
    `NotLowerable` on what has no machine code.
    """
    target, cache = target or host(), cache or default_cache()
    objects: dict[str, bytes] = {}
    kernels: dict[str, KernelInfo] = {}
    symbols: dict[Hashable, str] = {}
    for name, function in functions.items():
        key = structural_key(function)
        if key not in symbols:
            symbols[key] = _compile(name, function, target, intrinsics, cache, objects)
        dtypes = tuple(b.dtype for b in function.params)
        scalars = len(function.symbols)
        kernels[name] = KernelInfo(symbols[key], dtypes, function.num_outputs, scalars)
    cache.trim()
    return CompiledKernels(target, objects, kernels)


def _compile(
    name: str,
    function: PrimFunc,
    target: Target,
    intrinsics: Intrinsics,
    cache: ObjectCache,
    objects: dict[str, bytes],
) -> str:
    """Add the objects of `function` and of what it calls; returns its symbol."""
    try:
        text = llvm_text(function, target, intrinsics)
    except NotLowerable as error:
        raise NotLowerable(f"{name}: {error}") from error
    symbol = f"kernel_{digest(text)[:24]}"
    if symbol not in objects:
        objects[symbol] = cached_object(text.replace("@kernel(", f"@{symbol}("), target, cache)
    for call in statements(function.body):
        if isinstance(call, TensorIntrinsic):
            module = _intrinsic(call, target, intrinsics)
            if call.name not in objects:
                objects[call.name] = cached_object(str(module), target, cache)
    return symbol


def _intrinsic(call: TensorIntrinsic, target: Target, intrinsics: Intrinsics) -> Module:
    module = _written(intrinsics[call.name], target)
    passed = (PTR,) * len(call.buffers) + (I64,) * len(call.scalars)
    if module.signatures.get(call.name) != passed:
        raise NotLowerable(
            f"{call.name} of {len(call.buffers)} buffers and {len(call.scalars)} scalars: "
            f"takes ({', '.join(map(str, module.signatures.get(call.name, ())))})"
        )
    return module


@lru_cache(maxsize=64)
def _written(emitter: IntrinsicEmitter, target: Target) -> Module:
    module = Module(target)
    emitter(module, target)
    return module


def llvm_text(
    function: PrimFunc, target: Target | None = None, intrinsics: Intrinsics = _NO_INTRINSICS
) -> str:
    """The LLVM module of a scheduled function, under the name ``kernel``."""
    return str(generate(function, "kernel", target or host(), intrinsics))


def emit_assembly(
    function: PrimFunc, target: Target | None = None, intrinsics: Intrinsics = _NO_INTRINSICS
) -> str:
    """The machine code of a scheduled function, in assembly language."""
    target = target or host()
    return assembly(llvm_text(function, target, intrinsics), target)
