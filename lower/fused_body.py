"""Evaluation of the body of a fused function; calls are evaluated by two subclasses."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.errors import NotLowerable
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, TensorStructInfo
from relax_egraph.ir.walk import bindings_of
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer

Value: TypeAlias = Buffer | tuple[Dim, ...] | list["Value"]
"""The value of a variable: a tensor, a shape, or the fields of a tuple."""


@dataclass(slots=True)
class FusedBody(ABC):
    """The values of the variables of one function, to which errors refer by `name`."""

    name: str
    values: dict[Var, Value] = field(default_factory=dict[Var, Value])

    @abstractmethod
    def tensor(self, name: str, shape: Shape, dtype: str) -> Buffer:
        """A tensor parameter."""

    @abstractmethod
    def constant(self, filled: te.Tensor) -> Buffer:
        """A tensor of at most one element, `filled` with a constant."""

    @abstractmethod
    def call(self, call: Call) -> Value:
        """The value of `call`; raises `NotLowerable` if it has no loops."""

    def evaluate(self, function: Function) -> tuple[list[Buffer], list[Buffer]]:
        """The tensors among the parameters of `function`, and its results."""
        inputs = [v for v in map(self._param, function.params) if isinstance(v, Buffer)]
        for binding in bindings_of(function.body):
            if not isinstance(binding, VarBinding):
                raise NotLowerable(f"{self.name}: {binding.var.name} is checked at run time")
            self.values[binding.var] = self.value(binding.value)
        return inputs, self._outputs(function.body.body)

    def value(self, expr: Expr) -> Value:
        """The value of `expr`, whose variables have values already."""
        match expr:
            case Var():
                return self.values[expr]
            case ShapeExpr(values=values):
                return values
            case Tuple(fields=fields):
                return [self.value(f) for f in fields]
            case TupleGetItem(tuple_value=inner, index=index):
                fields = self.value(inner)
                assert isinstance(fields, list)
                return fields[index]
            case Constant():
                return self._scalar(expr)
            case Call():
                return self.call(expr)
            case _:
                raise NotLowerable(f"{self.name}: a {type(expr).__name__} cannot be fused")

    def _param(self, param: Var) -> Value:
        info = param.struct_info
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            self.values[param] = info.values
        elif isinstance(info, TensorStructInfo) and info.dims is not None and info.dtype:
            self.values[param] = self.tensor(param.name, info.dims, info.dtype)
        else:
            raise NotLowerable(
                f"{self.name}: parameter {param.name} is {info}, "
                "needs a tensor of known shape and dtype"
            )
        return self.values[param]

    def _scalar(self, constant: Constant) -> Buffer:
        if constant.data.size > 1:
            raise NotLowerable(
                f"{self.name}: a constant {constant.struct_info}, needs a scalar or a parameter"
            )
        number = constant.data.item() if constant.data.size else 0
        value = te.const(number, constant.data.dtype.name)
        return self.constant(te.compute(constant.data.shape, lambda *_: value, "const"))

    def _outputs(self, result: Expr) -> list[Buffer]:
        value = self.value(result)
        fields = value if isinstance(value, list) else [value]
        tensors = [f for f in fields if isinstance(f, Buffer)]
        if len(tensors) < len(fields) or not tensors:
            raise NotLowerable(f"{self.name}: returns {result.struct_info}, needs tensors")
        return tensors
