"""The machine code of kernels, and of the micro-kernels they call, in assembly language."""

import re
from collections.abc import Hashable, Iterator, Mapping

from relax_egraph.lower.codegen import generate
from relax_egraph.lower.emit.module_text import IntrinsicEmitter, Module
from relax_egraph.lower.emit.target import Target, host
from relax_egraph.lower.jit.compiling import code_key
from relax_egraph.lower.jit.machine_code import assembly
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic


def assemblies(
    functions: Mapping[str, PrimFunc],
    intrinsics: Mapping[str, IntrinsicEmitter],
    target: Target | None = None,
) -> Iterator[tuple[str, str]]:
    """The names and assembly texts of distinct `functions`, then of the micro-kernels they call.

    Functions of the same code are one kernel, under the name of the first.
    """
    target = target or host()
    seen: set[Hashable] = set()
    called: dict[str, None] = {}
    for name, function in functions.items():
        if (key := code_key(function)) in seen:
            continue
        seen.add(key)
        text = str(generate(function, "kernel", target, intrinsics))
        # In the assembly: in the text the name may be that of a function that is called.
        yield name, re.sub(r"\bkernel\b", lambda _, name=name: name, assembly(text, target))
        for statement in statements(function.body):
            if isinstance(statement, TensorIntrinsic):
                called[statement.name] = None
    for name in called:
        module = Module(target)
        intrinsics[name](module, target)
        yield name, assembly(str(module), target)
