"""Nodes of an ONNX graph, written for the steps of a program."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from bench.program import Array, NotRunnable, Operand, Step
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Constant, ShapeExpr, Var
from relax_egraph.ir.struct_info import TensorStructInfo

onnx: Any = import_module("onnx")  # optional: absent when types are checked


@dataclass(frozen=True, slots=True)
class Writer:
    """The nodes so far, and the tensors that they read beside the parameters.

    `names` are of all values of the program.  `appended` maps a grown cache to its parameter and
    the appended row.
    """

    names: Mapping[Var | Constant, str]
    nodes: list[Any]
    tensors: dict[str, Array]
    appended: dict[str, tuple[str, str]]

    def node(self, kind: str, operands: list[str], result: str, *more: str, **attrs: Attr) -> str:
        """Add a node with the output `result`, and `more`; returns `result`."""
        self.nodes.append(onnx.helper.make_node(kind, operands, [result, *more], **attrs))
        return result

    def reshaped(self, x: str, result: str, shape: tuple[int, ...]) -> str:
        """Add a node that reshapes `x`; returns `result`."""
        shape_name = self.tensor(f"{result}_shape", np.array(shape, np.int64))
        return self.node("Reshape", [x, shape_name], result)

    def tensor(self, name: str, data: Array) -> str:
        """Add a tensor; returns `name`."""
        self.tensors[name] = data
        return name

    def result(self, step: Step) -> str:
        """The name of the result of `step`."""
        return self.names[step.result]

    def operands(self, step: Step) -> list[str]:
        """The names of the operands of `step`, with tuples flattened; all are tensors."""
        return [self._name(operand) for operand in _flat(step.operands)]

    def _name(self, operand: Operand) -> str:
        if not isinstance(operand, Var | Constant):
            raise NotRunnable(f"an operand is {operand}: needs a tensor")
        return self.names[operand]

    def numbers(self, step: Step, use: str, values: tuple[int, ...]) -> str:
        """A tensor of integers, for one `use` by `step`."""
        return self.tensor(f"{self.result(step)}_{use}", np.array(values, np.int64))


Write: TypeAlias = Callable[[Writer, Step], object]
"""A function that adds the nodes of a step; raises `NotRunnable` for unsupported attributes."""


def _flat(operands: tuple[Operand, ...]) -> list[Operand]:
    return [o for each in operands for o in (_flat(each) if isinstance(each, tuple) else [each])]


def extents_of(operand: Operand) -> tuple[Dim, ...]:
    """The extents of a tensor or a shape."""
    if isinstance(operand, ShapeExpr):
        return operand.values
    assert isinstance(operand, Var | Constant)
    info = operand.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return info.dims


def integers(attr: Attr) -> tuple[int, ...]:
    """The values of an attribute of integers."""
    assert isinstance(attr, tuple)
    return tuple(int(e) for e in attr if isinstance(e, int))


def numbers_of(shape: Operand) -> tuple[int, ...]:
    """The extents of a tensor or a shape; raises `NotRunnable` for symbolic ones."""
    extents = extents_of(shape)
    if not all(isinstance(d, int) for d in extents):
        raise NotRunnable(f"shape {extents}: needs numbers")
    return tuple(d for d in extents if isinstance(d, int))


def tensor_of(operand: Operand) -> Var | Constant:
    """`operand`, which is a tensor."""
    assert isinstance(operand, Var | Constant)
    return operand
