"""What extraction asks of whoever runs kernels."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo


class KernelLibrary(Protocol):
    """Knows which kernels can be run, and how well."""

    def schedule_of(self, kernel: Kernel) -> Schedule | None:
        """How `kernel` would be run; ``None`` if no schedule runs it.

        Depends on the kernel's structure alone, so that an answer may be remembered.
        """
        ...

    def schedule_alone(
        self,
        op: Op,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
    ) -> Schedule | None:
        """How an operator that is no kernel's step would be run, by loops of its own.

        `operands` are its tensors.  ``None`` if it is called at run time.
        """
        ...
