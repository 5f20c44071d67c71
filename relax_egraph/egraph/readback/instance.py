"""A program over symbols at values of these: each of their places in a block has its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from relax_egraph.egraph.node import Node
from relax_egraph.egraph.view import Choice, ENode, Program, View
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.kernel import Input, Kernel, Step
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor


def instance(view: View, program: Program, values: Mapping[str, Dim]) -> tuple[View, Program]:
    """`view` and a `program` of it with `values` for symbols.

    Of the nodes of classes only those in `program` change: it is all that is read of them.
    """
    if not values:
        return view, program
    put = _Putting(values)
    classes = {c: replace(e, struct_info=put.info(e.struct_info)) for c, e in view.classes.items()}
    return replace(view, classes=classes), tuple(map(put.choice, program))


@dataclass(slots=True)
class _Putting:
    """Puts `values` for symbols; equal dimensions are evaluated once."""

    values: Mapping[str, Dim]
    known: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    def choice(self, choice: Choice) -> Choice:
        how = choice.how
        return replace(choice, how=self.kernel(how) if isinstance(how, Kernel) else self.node(how))

    def kernel(self, kernel: Kernel) -> Kernel:
        inputs = (Input(self.info(i.struct_info), i.scalar) for i in kernel.inputs)
        return replace(kernel, inputs=tuple(inputs), steps=tuple(map(self.step, kernel.steps)))

    def step(self, step: Step) -> Step:
        operands = tuple(map(self.operand, step.operands))
        return Step(step.op, operands, step.attrs, self.info(step.struct_info))

    def node(self, node: ENode) -> ENode:
        return Node(node.op, tuple(map(self.operand, node.children)), node.attrs)

    def operand(self, operand: Any) -> Any:
        """An operand of a node or step; one that is a class or a number of a value stays."""
        match operand:
            case ShapeStructInfo(values=tuple() as extents):
                return replace(operand, values=tuple(map(self.dim, extents)))
            case PrimValue(value=value) if not isinstance(value, float):
                return replace(operand, value=self.dim(value))
            case _:
                return operand

    def info(self, info: TensorStructInfo) -> TensorStructInfo:
        if info.dims is None or all(isinstance(n, int) for n in info.dims):
            return info
        return tensor(tuple(map(self.dim, info.dims)), info.dtype)

    def dim(self, dim: Dim) -> Dim:
        if isinstance(dim, int):
            return dim
        if dim not in self.known:
            self.known[dim] = dims.substitute(dim, self.values)
        return self.known[dim]
