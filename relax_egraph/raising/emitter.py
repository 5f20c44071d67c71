"""Emission of operators, each once."""

from collections.abc import Hashable
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Attr, Call, Constant, Expr, PrimValue, ShapeExpr, Tuple
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import Shape, TensorStructInfo
from relax_egraph.raising.unreadable import Unreadable

MOST_STEPS = 16
"""The most operators between a reduction and the place where its axes are put back."""


class Emitter:
    """Emits operators into the open block of `builder`; equal calls are one binding."""

    def __init__(self, builder: BlockBuilder) -> None:
        self._builder = builder
        self._emitted: dict[Hashable, Expr] = {}
        self._calls: dict[Expr, Call] = {}

    def __call__(self, name: str, *args: Expr, **attrs: Attr) -> Expr:
        """The result of the operator `name`; raises `Unreadable` if it refuses its operands."""
        key = (name, tuple(map(_key, args)), repr(sorted(attrs.items())))
        if key not in self._emitted:
            try:
                made = call(name, *args, **attrs)
                self._emitted[key] = self._builder.emit(made)
                self._calls[self._emitted[key]] = made
            except IllTyped as problem:
                raise Unreadable(str(problem)) from None
        return self._emitted[key]

    def call_of(self, value: Expr) -> Call | None:
        """The call of an operator that `value` is the result of, if it was emitted here."""
        return self._calls.get(value)

    def expand(self, value: Expr, axes: tuple[int, ...]) -> Expr:
        """`value` with new axes of extent 1, which reductions that dropped them keep instead."""
        kept = self._keeping(value, axes, MOST_STEPS)
        return self("expand_dims", value, axis=axes) if kept is None else kept

    def _keeping(self, value: Expr, axes: tuple[int, ...], steps: int) -> Expr | None:
        """`value` with `axes`, if it is a map of numbers and of reductions over these axes."""
        made = self._calls.get(value)
        if made is None or not isinstance(made.op, Op) or not steps:
            return None
        if "keepdims" in made.attrs:
            over = made.attrs["axis"]
            same = over == axes and not made.attrs["keepdims"]
            return self(made.op.name, *made.args, axis=axes, keepdims=True) if same else None
        if not made.op.elementwise:
            return None
        kept: list[Expr] = []
        for arg in made.args:
            number = isinstance(arg, Constant) and not arg.data.shape
            operand = arg if number else self._keeping(arg, axes, steps - 1)
            if operand is None:
                return None
            kept.append(operand)
        if all(isinstance(k, Constant) for k in kept):
            return None
        return self(made.op.name, *kept, **made.attrs)

    def broadcast(self, value: Expr, shape: Shape) -> Expr:
        """`value`, broadcast to `shape`."""
        if same_shape(value, shape):
            return value
        return self("broadcast_to", value, ShapeExpr(shape))

    def reshape(self, value: Expr, shape: Shape) -> Expr:
        """`value` in another shape of as many elements, unless it has that already."""
        if same_shape(value, shape):
            return value
        return self("reshape", value, ShapeExpr(shape))


def shape_of(value: Expr) -> Shape:
    """The extents of a tensor; raises `Unreadable` if they are unknown."""
    info = value.struct_info
    if not isinstance(info, TensorStructInfo) or info.dims is None:
        raise Unreadable("the shape of an intermediate value is known only at run time")
    return info.dims


def same_shape(value: Expr, shape: Shape) -> bool:
    """Whether `value` is proven to have `shape`."""
    own = shape_of(value)
    return len(own) == len(shape) and all(map(dims.equal, own, shape))


def _key(value: Expr) -> Hashable:
    match value:
        case Constant(data=data):
            content: Any = data.tobytes()
            return (data.dtype.name, data.shape, content)
        case Tuple(fields=fields):
            return tuple(map(_key, fields))
        case ShapeExpr():
            return value
        case PrimValue(value=number, dtype=dtype):
            return (repr(number), dtype)
        case _:
            return id(value)
