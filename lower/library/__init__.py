"""The kernel library: the kernels that schedules can run as one loop nest, and their efficiency.

Extraction prices its cuts with this table.  An accepted kernel is scheduled by the named anchor; a
refused one is cut in two by extraction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo
from relax_egraph.lower.library.attention import attention
from relax_egraph.lower.library.maps import ELEMENTWISE, MOVES, elementwise, movement
from relax_egraph.lower.library.matmul_rows import matmul_rows
from relax_egraph.lower.library.operators import ROWS, schedule_of_operator, schedule_of_own
from relax_egraph.lower.library.products import CONVOLUTIONS, contraction, convolution, product
from relax_egraph.lower.library.proofs import ATTENTION, agrees
from relax_egraph.lower.library.rows import CHAINED, reduces_last_axis, rows
from relax_egraph.lower.library.views import RESHAPES

KNOWN = MOVES | RESHAPES | CHAINED | ATTENTION | CONVOLUTIONS | {"matmul", "concat"}
"""The operators of steps of kernels, beside the elementwise ones."""

MOVEMENTS = MOVES | RESHAPES | ATTENTION | {"concat"}
"""The operators of kernels of one attention, which reads and writes moved tensors."""

VIEW = Schedule("view", flops=1.0, bandwidth=1.0)
REDUCED = Schedule("generic", flops=0.2, bandwidth=0.8)
COLUMNS = Schedule("columns", flops=0.2, bandwidth=0.8)


@dataclass(frozen=True, slots=True)
class Library:
    """The schedules of `lower.schedule`; implements extraction's ``KernelLibrary``.

    A kernel reads at most `max_inputs` tensors: each is a stream for the memory system, and an
    address in a register.
    """

    max_inputs: int = 12

    def schedule_of(self, kernel: Kernel) -> Schedule | None:
        """The schedule that runs `kernel` as one loop nest; ``None`` if there is none.

        Refused are unknown shapes, operators with data-dependent results or calls of functions,
        views inside larger kernels, and kernels that fit no single anchor.
        """
        names = {step.op.name for step in kernel.steps}
        reads_views = len(kernel.steps) == 1 or names & ATTENTION
        if not names or (names & RESHAPES and not reads_views):
            return None
        if not all(map(_is_lowerable, kernel.steps)):
            return None
        for value in (*kernel.inputs, *kernel.steps):
            if value.struct_info.dims is None or value.struct_info.dtype is None:
                return None
        if len([i for i in kernel.inputs if i.scalar is None]) > self.max_inputs:
            return None
        for step in kernel.steps:
            if not step.op.elementwise and not agrees(kernel, step):
                return None
        if names & ATTENTION:
            return attention(kernel)
        if names & CONVOLUTIONS:
            return convolution(kernel)
        if len(kernel.steps) == 1:
            return _single(kernel, kernel.steps[0])
        if "matmul" in names:
            return matmul_rows(kernel) if names & CHAINED else product(kernel)
        return rows(kernel) if names & CHAINED else elementwise(kernel)

    def may_grow(self, operators: frozenset[str]) -> bool:
        """Whether a refused kernel with steps of `operators` may run with further steps on top.

        Movements may become operands of an attention, or the order in which it writes its result.
        All other refusals are final: of two products, of an operand that is computed before its
        product, of rows that differ, steps on top change nothing.
        """
        return operators <= MOVEMENTS

    def schedule_of_operator(
        self,
        op: Op,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
    ) -> Schedule | None:
        """The schedule of the loops of `op`; ``None`` if it is called at run time."""
        if op.own:
            return schedule_of_own(op, op.own, operands, results)
        return schedule_of_operator(op.name, attrs, operands, results)


def _is_lowerable(step: Step) -> bool:
    if not step.op.elementwise and step.op.name not in KNOWN:
        return False
    for operand in step.operands:
        if isinstance(operand, ShapeStructInfo) and operand.values is None:
            return False
    return True


def _single(kernel: Kernel, step: Step) -> Schedule:
    """The schedule of a kernel of one step; every lowerable operator has one."""
    name = step.op.name
    if name in RESHAPES:
        return VIEW
    if name == "permute_dims":
        return movement(step)
    if name == "matmul":
        return product(kernel) or contraction(kernel, step)
    if name in CHAINED:
        along_columns = COLUMNS if name in ("mean", "nn.softmax") else REDUCED
        return rows(kernel) or (ROWS if reduces_last_axis(kernel, step) else along_columns)
    return ELEMENTWISE
