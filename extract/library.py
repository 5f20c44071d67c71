"""The interface between extraction and the library that runs kernels."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo


class KernelLibrary(Protocol):
    """Says which kernels can run, and at what share of the machine's peak."""

    def schedule_of(self, kernel: Kernel) -> Schedule | None:
        """The schedule of `kernel`; ``None`` if there is none.

        It depends on the kernel's structure alone, so that callers may cache it.
        """
        ...

    def may_grow(self, operators: frozenset[str]) -> bool:
        """Whether a refused kernel with steps of `operators` may run with further steps on top.

        Extraction drops refused cuts that may not, so larger cuts are not built on them.
        """
        ...

    def schedule_of_operator(
        self,
        op: Op,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
    ) -> Schedule | None:
        """The schedule of an operator outside of kernels, by its own loops.

        `operands` are its tensors.  ``None`` if it is called at run time.
        """
        ...
