"""Compilation of loop functions to machine code, and linking of machine code to callables."""

from typing import TYPE_CHECKING

from relax_egraph.base.lazy import load_lazily

if TYPE_CHECKING:
    from relax_egraph.lower.jit.compiled import CompiledKernels as CompiledKernels
    from relax_egraph.lower.jit.compiling import compile_kernels as compile_kernels
    from relax_egraph.lower.jit.compiling import emit_assembly as emit_assembly
    from relax_egraph.lower.jit.compiling import llvm_text as llvm_text
    from relax_egraph.lower.jit.linking import Kernel as Kernel
    from relax_egraph.lower.jit.linking import address_of as address_of
    from relax_egraph.lower.jit.linking import link as link

load_lazily(
    __name__,
    {
        "relax_egraph.lower.jit.compiled": ["CompiledKernels"],
        "relax_egraph.lower.jit.compiling": ["compile_kernels", "emit_assembly", "llvm_text"],
        "relax_egraph.lower.jit.linking": ["Kernel", "address_of", "link"],
    },
)
