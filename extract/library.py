"""What extraction asks of whoever runs kernels."""

from typing import Protocol

from relax_egraph.ir.kernel import Kernel, Schedule


class KernelLibrary(Protocol):
    """Knows which kernels can be run, and how well."""

    def schedule_of(self, kernel: Kernel) -> Schedule | None:
        """How `kernel` would be run; ``None`` if no schedule runs it.

        Depends on the kernel's structure alone, so that an answer may be remembered.
        """
        ...
