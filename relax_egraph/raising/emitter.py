"""Emission of operators, each once."""

from collections.abc import Hashable
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Attr, Constant, Expr, ShapeExpr, Tuple
from relax_egraph.ir.struct_info import Shape, TensorStructInfo
from relax_egraph.raising.unreadable import Unreadable


class Emitter:
    """Emits operators into the open block of `builder`; equal calls are one binding."""

    def __init__(self, builder: BlockBuilder) -> None:
        self._builder = builder
        self._emitted: dict[Hashable, Expr] = {}

    def __call__(self, name: str, *args: Expr, **attrs: Attr) -> Expr:
        """The result of the operator `name`; raises `Unreadable` if it refuses its operands."""
        key = (name, tuple(map(_key, args)), repr(sorted(attrs.items())))
        if key not in self._emitted:
            try:
                self._emitted[key] = self._builder.emit(call(name, *args, **attrs))
            except IllTyped as problem:
                raise Unreadable(str(problem)) from None
        return self._emitted[key]

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
        case _:
            return id(value)
