"""An operation of a program: the interface of the converters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import Builder, dtype_of, info_of
from relax_egraph.frontends.building.elements import Elements
from relax_egraph.frontends.stablehlo import tensors
from relax_egraph.frontends.stablehlo.program import Program
from relax_egraph.frontends.stablehlo.values import Scope, Value
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, Constant, Expr, PrimValue, ShapeExpr, Var, const
from relax_egraph.ir.op import Op


@dataclass(frozen=True, slots=True)
class Node(Builder):
    """An operation and the values of its operands.

    One that cannot be converted raises `ModelError` with the reason.
    """

    name: str
    operation: ir.Operation
    operands: tuple[Value, ...]
    scope: Scope
    program: Program

    # --- operands ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.operands)

    def __getitem__(self, place: int) -> Expr:
        """The operand at `place`."""
        return self.scope.expr(self.operands[place])

    def shape(self, place: int) -> tuple[Dim, ...]:
        """The shape of the operand at `place`."""
        return shape_of(self[place])

    def rank(self, place: int) -> int:
        """The rank of the operand at `place`."""
        return len(self.shape(place))

    def dtype(self, place: int) -> str:
        """The dtype of the operand at `place`."""
        return dtype_of(self[place])

    def elements(self, place: int) -> Elements | None:
        """The elements of the operand at `place`, if they are known now."""
        return self.operands[place].elements

    def sizes(self, place: int) -> tuple[Dim, ...]:
        """The operand at `place`, integers of which each is known now or is a size."""
        elements = self.elements(place)
        if elements is None:
            raise ModelError(f"its operand {place} is computed at run time, needs sizes of tensors")
        return elements.dims

    def known(self, place: int) -> tuple[int, ...]:
        """The operand at `place`, integers that are known now."""
        sizes = self.sizes(place)
        numbers = tuple(s for s in sizes if isinstance(s, int))
        if len(numbers) < len(sizes):
            raise ModelError(f"its operand {place} is {_listed(sizes)}, needs known integers")
        return numbers

    # --- results ----------------------------------------------------------------------

    @property
    def out_dtype(self) -> str:
        """The dtype of the first result."""
        return tensors.dtype_of(self.operation.results[0].type)

    @property
    def out_rank(self) -> int:
        """The rank of the first result."""
        return len(tensors.shape_of(self.operation.results[0].type))

    def static_shape(self) -> tuple[int, ...]:
        """The shape of the first result, which must be static."""
        shape = tensors.shape_of(self.operation.results[0].type)
        known = tuple(extent for extent in shape if extent is not None)
        if len(known) < len(shape):
            raise ModelError(f"its result is {self.operation.results[0].type}, of unknown extents")
        return known

    # --- attributes -------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the attribute `name` is there."""
        return name in self.operation.attributes

    def attribute(self, name: str) -> Any:
        """The attribute `name`, as MLIR has it."""
        if not self.has(name):
            raise ModelError(f"it has no attribute {name}")
        return self.operation.attributes[name]

    def integer(self, name: str, default: int | None = None) -> int:
        """The attribute `name`, an integer."""
        if default is not None and not self.has(name):
            return default
        return int(self.attribute(name).value)

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """The attribute `name`, some integers."""
        if default is not None and not self.has(name):
            return tuple(default)
        return tuple(map(int, self.attribute(name)))

    def pairs(self, name: str, count: int) -> tuple[tuple[int, int], ...]:
        """The attribute `name`, `count` pairs of integers; zeros if it is not there."""
        if not self.has(name):
            return ((0, 0),) * count
        return tuple((int(a), int(b)) for a, b in np.array(self.attribute(name)).reshape(-1, 2))

    def text(self, name: str) -> str:
        """The attribute `name`, a string or the name of a function."""
        return str(self.attribute(name).value)

    # --- what it becomes --------------------------------------------------------------

    def bind(self, value: Expr) -> Expr:
        """`value` bound to a variable."""
        return self.scope.bb.emit(value)

    def reshaped(self, value: Expr, shape: Sequence[Dim]) -> Expr:
        """`value` in `shape`."""
        if tuple(shape) == shape_of(value):
            return value
        return self.emit("reshape", value, ShapeExpr(tuple(shape)))

    def permuted(self, value: Expr, axes: Sequence[int]) -> Expr:
        """`value` with its axes in the order `axes`."""
        if list(axes) == sorted(axes):
            return value
        return self.emit("permute_dims", value, axes=tuple(axes))

    def broadcast(self, value: Expr, shape: Sequence[Dim]) -> Expr:
        """`value`, repeated to `shape`."""
        if tuple(shape) == shape_of(value):
            return value
        if isinstance(value, Constant) and value.data.size == 1:
            return self.filled(Constant(value.data.reshape(())), shape)
        return self.emit("broadcast_to", value, ShapeExpr(tuple(shape)))

    def narrow(self, *values: Expr) -> list[Expr]:
        """`values`, of one shape, for an operator that broadcasts: as they were before they were.

        Together they have the same shape.
        """
        narrow = [self._source(value) for value in values]
        shape = max((shape_of(value) for value in values), key=len)
        for axis, extent in enumerate(shape, -len(shape)):
            if not any(_has(value, axis, extent) for value in narrow):
                at = next(k for k, v in enumerate(values) if narrow[k] is not v)
                narrow[at] = values[at]
        return narrow

    def _source(self, value: Expr) -> Expr:
        """What `value` repeats."""
        binding = self.scope.bb.lookup_binding(value) if isinstance(value, Var) else None
        match binding:
            case Call(op=Op(name="broadcast_to"), args=(source, _)):
                return source
            case Call(op=Op(name="full"), args=(_, Constant() as source)):
                return source
            case _:
                return value

    def sliced(
        self,
        value: Expr,
        begin: Sequence[Dim],
        end: Sequence[Dim],
        strides: Sequence[int] | None = None,
    ) -> Expr:
        """``value[begin:end:strides]``, along all axes."""
        shape = shape_of(value)
        steps = strides or (1,) * len(shape)
        axes = tuple(
            k
            for k, n in enumerate(shape)
            if begin[k] != 0 or steps[k] != 1 or not dims.equal(end[k], n)
        )
        if not axes:
            return value
        first, last = (ShapeExpr(tuple(at[k] for k in axes)) for at in (begin, end))
        steps = tuple(steps[k] for k in axes)
        return self.emit(
            "strided_slice", value, first, last, axes=axes, strides=steps, assume_inbound=True
        )

    def iota(self, count: Dim, dtype: str) -> Expr:
        """The vector ``0, 1, …, count - 1``."""
        return self.emit("arange", PrimValue(count), dtype=dtype)

    def filled(self, value: Expr, shape: Sequence[Dim]) -> Expr:
        """A tensor of `shape` with the scalar `value` everywhere."""
        return self.emit("full", ShapeExpr(tuple(shape)), value) if shape else value


def shape_of(value: Expr) -> tuple[Dim, ...]:
    """The shape of `value`, which every value of a program has."""
    shape = info_of(value).dims
    assert shape is not None
    return shape


def _has(value: Expr, axis: int, extent: Dim) -> bool:
    shape = shape_of(value)
    return len(shape) >= -axis and dims.equal(shape[axis], extent)


def number_of(value: Expr) -> float | None:
    """The number that `value` is everywhere, if it is constant."""
    if not isinstance(value, Constant) or value.data.size == 0:
        return None
    first = value.data.reshape(-1)[0]
    same = bool(np.all((value.data == first) | ((value.data != value.data) & (first != first))))
    return first.item() if same else None


def like(value: float, operand: Expr) -> Constant:
    """The number `value` in the dtype of `operand`."""
    return const(value, dtype_of(operand))


def _listed(values: Sequence[Dim]) -> str:
    return ", ".join(map(dims.text, values))
