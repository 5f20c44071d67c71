"""Kernels built step by step, for the tests of their consumers."""

from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Input, Kernel, Step
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)

Operand: TypeAlias = int | tuple[int, ...] | ShapeStructInfo

N, M, K = dims.symbol("n"), dims.symbol("m"), dims.symbol("k")


@dataclass
class Draft:
    """A kernel under construction: inputs first, then steps; values are numbers."""

    inputs: list[Input] = field(default_factory=list[Input])
    steps: list[Step] = field(default_factory=list[Step])

    def tensor(self, *shape: Dim, dtype: str = "float32") -> int:
        return self.input(Input(tensor(shape, dtype)))

    def scalar(self, value: float) -> int:
        return self.input(Input(tensor((), "float32"), value))

    def input(self, source: Input) -> int:
        assert not self.steps, "inputs come first"
        self.inputs.append(source)
        return len(self.inputs) - 1

    def info(self, value: int) -> TensorStructInfo:
        return self.kernel(0).info(value)

    def do(self, name: str, *operands: int | list[int] | Shape, **attrs: Attr) -> int:
        op = OPS[name]
        complete = complete_attrs(op, attrs)
        values = tuple(map(_operand, operands))
        infos = [self._info(o) for o in values]
        result = op.rule(*infos, **complete)
        assert isinstance(result, TensorStructInfo)
        self.steps.append(Step(op, values, tuple(complete.items()), result))
        return len(self.inputs) + len(self.steps) - 1

    def _info(self, operand: Operand) -> StructInfo:
        match operand:
            case int():
                return self.info(operand)
            case tuple():
                return TupleStructInfo(tuple(map(self.info, operand)))
            case _:
                return operand

    def kernel(self, *outputs: int) -> Kernel:
        return Kernel(tuple(self.inputs), tuple(self.steps), outputs)


def _operand(operand: int | list[int] | Shape) -> Operand:
    match operand:
        case int():
            return operand
        case list():
            return tuple(operand)
        case _:
            return ShapeStructInfo(tuple(operand), len(operand))
