"""A node of a graph of ATen operators: the interface of the converters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
import torch

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import Builder, dtype_of, info_of
from relax_egraph.frontends.building.dim_tensors import vector_of
from relax_egraph.frontends.torch import tensors
from relax_egraph.frontends.torch.symbolic_numbers import number_of
from relax_egraph.frontends.torch.symbols import Symbols
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, PrimValue, ShapeExpr, const
from relax_egraph.ir.ops.broadcast import broadcast_shapes
from relax_egraph.ir.struct_info import TensorStructInfo

Argument: TypeAlias = Any
"""An expression, a dimension, a number, a text, something of torch, or a list of those."""


@dataclass(frozen=True, slots=True)
class Node(Builder):
    """A node: the name of its overload, its arguments by their names in the schema, its results.

    Defaults of the schema are among the arguments.  `metas` has torch's tensors without elements
    for the arguments that are tensors, and torch's result by the name ``out``.  `results` has the
    struct info that torch says of each result, ``None`` for what is not a tensor.  A node that
    cannot be converted raises `ModelError` with the reason.
    """

    op: str
    name: str
    arguments: Mapping[str, Argument]
    metas: Mapping[str, Any]
    results: tuple[TensorStructInfo | None, ...]
    bb: BlockBuilder
    symbols: Symbols

    # --- tensors ----------------------------------------------------------------------

    def __getitem__(self, name: str) -> Expr:
        """The argument `name`, a tensor."""
        value = self.arguments[name]
        if isinstance(value, Expr):
            return value
        raise ModelError(f"its argument {name} is {value}, needs a tensor")

    def get(self, name: str) -> Expr | None:
        """The argument `name`, a tensor or ``None``."""
        return None if self.arguments[name] is None else self[name]

    def all(self, name: str) -> list[Expr]:
        """The argument `name`, a list of tensors."""
        found: list[Expr] = []
        for value in self.arguments[name]:
            if not isinstance(value, Expr):
                raise ModelError(f"its argument {name} has {value}, needs tensors")
            found.append(value)
        return found

    def shape(self, name: str) -> tuple[Dim, ...]:
        """The shape of the tensor `name`, which torch knows, with symbols for what is late."""
        shape = info_of(self[name]).dims
        assert shape is not None
        return shape

    def rank(self, name: str) -> int:
        """The rank of the tensor `name`."""
        return len(self.shape(name))

    def broadcast_shape(self, *names: str) -> tuple[Dim, ...]:
        """The shape that the tensors `names` broadcast to."""
        shape: tuple[Dim, ...] = ()
        for name in names:
            joined = broadcast_shapes(shape, self.shape(name))
            if joined is None:
                raise ModelError(f"it is not known what its arguments {names} broadcast to")
            shape = joined
        return shape

    def ranked(self, name: str) -> Expr:
        """The tensor `name`; with one axis if it has none."""
        return self[name] if self.rank(name) else self.reshaped(self[name], (1,))

    def dtype(self, name: str) -> str:
        """The dtype of the tensor `name`."""
        return dtype_of(self[name])

    @property
    def out(self) -> TensorStructInfo:
        """The struct info of the only result, or the first."""
        first = self.results[0]
        assert first is not None
        return first

    @property
    def out_shape(self) -> tuple[Dim, ...]:
        """The shape of the only result, or the first."""
        shape = self.out.dims
        assert shape is not None
        return shape

    @property
    def out_dtype(self) -> str:
        """The dtype of the only result, or the first."""
        dtype = self.out.dtype
        assert dtype is not None
        return dtype

    # --- tensors or numbers -----------------------------------------------------------

    def operand(self, name: str, dtype: str) -> Expr:
        """The argument `name`, a tensor or a number, as a tensor of `dtype`."""
        return self.as_tensor(self.arguments[name], dtype)

    def as_tensor(self, value: Argument, dtype: str) -> Expr:
        """A tensor, number or dimension as a tensor of `dtype`; numbers are of rank 0."""
        if isinstance(value, Constant) and value.data.ndim == 0:
            return const(value.data.astype(dtype))
        if isinstance(value, Expr):
            return self.cast(value, dtype)
        if isinstance(value, sympy.Expr):
            return self.cast(self.reshaped(vector_of(self.bb, (value,)), ()), dtype)
        if isinstance(value, bool | int | float):
            return self.scalar(value, dtype)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self.cast(number_of(self, self.symbols, value.node.expr), dtype)
        raise ModelError(f"it has the operand {value}, needs a tensor or a real number")

    def common_dtype(self, *names: str) -> str:
        """The dtype in which torch computes with the arguments `names`, tensors or numbers.

        Tensors with axes decide; those of rank 0 and numbers only where they are of a higher
        category: bool, integers, floats.
        """
        torch_dtypes = [_as_torch(self.arguments[name]) for name in names]
        first, *others = torch_dtypes
        kind = torch.result_type(first, others[0] if others else first)
        for other in others[1:]:
            wrapped = torch.empty((1,), dtype=kind, device="meta")
            kind = torch.result_type(wrapped, other)
        return tensors.dtype_of(kind)

    # --- other arguments --------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the schema has the argument `name`, and it is not ``None``."""
        return self.arguments.get(name) is not None

    def number(self, name: str) -> int | float:
        """The argument `name`, a number that is known now."""
        value = self.arguments[name]
        if isinstance(value, bool | int | float):
            return value
        raise ModelError(f"its argument {name} is {value}, needs a number")

    def integer(self, name: str) -> int:
        """The argument `name`, an integer that is known now."""
        value = self.arguments[name]
        if isinstance(value, int):
            return value
        raise ModelError(f"its argument {name} is {value}, needs an integer that is known now")

    def flag(self, name: str) -> bool:
        """The argument `name`, true or false."""
        return bool(self.arguments[name])

    def text(self, name: str) -> str:
        """The argument `name`, a string."""
        return str(self.arguments[name])

    def dim(self, name: str) -> Dim:
        """The argument `name`, a size."""
        value = self.arguments[name]
        if isinstance(value, int | sympy.Expr):
            return value
        raise ModelError(f"its argument {name} is {value}, needs a size")

    def sizes(self, name: str) -> tuple[Dim, ...]:
        """The argument `name`, a list of sizes."""
        return tuple(self.arguments[name])

    def integers(self, name: str) -> tuple[int, ...]:
        """The argument `name`, an integer or a list of integers that are known now."""
        value = self.arguments[name]
        values: Sequence[Any] = value if isinstance(value, list | tuple) else (value,)
        if not all(isinstance(v, int) for v in values):
            raise ModelError(f"its argument {name} is {value}, needs integers that are known now")
        return tuple(values)

    def dtype_named(self, name: str) -> str | None:
        """The argument `name`, a dtype or ``None``."""
        value = self.arguments[name]
        return None if value is None else tensors.dtype_of(value)

    def axis(self, name: str, rank: int) -> int:
        """The argument `name`, an axis of a tensor of `rank`, counted from the front."""
        return normalized(self.integer(name), rank)

    def axes(self, name: str, rank: int) -> tuple[int, ...] | None:
        """The argument `name`, some axes, counted from the front; ``None`` for all of them."""
        if not self.has(name) or self.arguments[name] == []:
            return None
        return tuple(normalized(axis, rank) for axis in self.integers(name))

    # --- what it becomes --------------------------------------------------------------

    def bind(self, value: Expr) -> Expr:
        """`value` bound to a variable."""
        return self.bb.emit(value, self.name)

    def stretched(self, value: Expr, shape: Sequence[Dim]) -> Expr:
        """`value`, broadcast to `shape`."""
        if info_of(value).dims == tuple(shape):
            return value
        return self.emit("broadcast_to", value, ShapeExpr(tuple(shape)))

    def reshaped(self, value: Expr, shape: Sequence[Dim]) -> Expr:
        """`value` in `shape`."""
        if info_of(value).dims == tuple(shape):
            return value
        return self.emit("reshape", value, ShapeExpr(tuple(shape)))

    def sequence(self, count: Dim) -> Expr:
        """The integers from 0 to before `count`, in int64."""
        numbers = (PrimValue(0), PrimValue(count), PrimValue(1))
        return self.emit("arange", *numbers, dtype="int64")


def normalized(axis: int, rank: int) -> int:
    """`axis`, which may count from the end, counted from the front; torch has checked it."""
    return axis % max(rank, 1)


def _as_torch(value: Argument) -> "torch.Tensor | bool | int | float":
    """Something with the dtype and category of `value`, for torch's rules of promotion."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, torch.SymFloat):
        return 1.0
    if isinstance(value, torch.SymBool):
        return True
    if isinstance(value, sympy.Expr | torch.SymInt):
        return 1
    info = info_of(value)
    assert info.dtype is not None
    rank = (1,) * min(info.ndim, 1)
    return torch.empty(rank, dtype=getattr(torch, info.dtype), device="meta")
