"""Expressions as operators: the value of an expression at all points of a frame is a tensor."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import converted, is_stored
from relax_egraph.ir.expr import Constant, Expr, PrimValue, ShapeExpr, Tuple, const
from relax_egraph.raising.elements import element
from relax_egraph.raising.emitter import Emitter
from relax_egraph.raising.frame import Frame, aligned
from relax_egraph.raising.pieces import Cut, cut_of, ranges
from relax_egraph.raising.scalars import operator_of
from relax_egraph.raising.unreadable import Unreadable
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Select,
    TirExpr,
    TirVar,
    from_dim,
)
from relax_egraph.tir.rewrite import loads, substitute
from relax_egraph.tir.simplify import simplify_index

MOST_EXACT = 1 << 53
"""The greatest magnitude up to which a float, as padding is written, is any integer."""


@dataclass(frozen=True, slots=True)
class Sum:
    """``Σ operand`` over `axes`, of `count` elements each: a quotient by that is a mean."""

    operand: Expr
    axes: tuple[int, ...]
    keepdims: bool
    count: Dim


@dataclass(slots=True)
class Values:
    """The tensors of buffers, and of expressions over them."""

    emit: Emitter
    tensors: dict[Buffer, Expr] = field(default_factory=dict[Buffer, Expr])
    sums: dict[Expr, Sum] = field(default_factory=dict[Expr, Sum])
    filled: dict[Buffer, float | int] = field(default_factory=dict[Buffer, float | int])

    def whole(self, expr: TirExpr, frame: Frame, sure: bool = True) -> Expr:
        """`expr` as a tensor of the shape of `frame`."""
        return self.emit.broadcast(self.of(expr, frame, sure), frame.shape)

    def of(self, expr: TirExpr, frame: Frame, sure: bool = True) -> Expr:
        """`expr` as a tensor that broadcasts to `frame`.

        Unless it is `sure` that all of `expr` is evaluated, its loads must be proven to be within
        their buffers.
        """
        if isinstance(expr, Binary) and expr.dtype == "int64" and not loads(expr):
            expr = simplify_index(expr, frame.extents)
        match expr:
            case Imm():
                return _literal(expr)
            case BufferLoad(buffer=buffer):
                if buffer not in self.tensors:
                    raise Unreadable(f"{buffer.name} is read before it is stored")
                tensor = self.tensors[buffer]
                return element(self.emit, tensor, expr, frame, self.whole, sure)
            case TirVar():
                if expr not in frame.extents:
                    raise Unreadable(f"{expr.name} is no axis")
                bounds = (PrimValue(0), PrimValue(frame.extents[expr]), PrimValue(1))
                count = self.emit("arange", *bounds, dtype="int64")
                return aligned(self.emit, count, [expr], frame)
            case DimSymbol():
                return self._dim(dims.symbol(expr.name))
            case Select():
                return self._choice(expr, frame, sure)
            case _:
                pass
        if expr.dtype == "int64" and (dim := dim_of(expr)) is not None:
            return self._dim(dim)
        if isinstance(expr, Binary) and expr.kind == "/":
            mean = self._mean(expr, frame, sure)
            if mean is not None:
                return mean
        return self._scalar(expr, frame, sure)

    def _scalar(self, expr: TirExpr, frame: Frame, sure: bool) -> Expr:
        if isinstance(expr, Cast):
            return self.emit("astype", self.of(expr.value, frame, sure), dtype=expr.dtype)
        found = operator_of(expr)
        if found is None:
            written = f"T.{expr.name}" if isinstance(expr, Intrinsic) else type(expr).__name__
            raise Unreadable(f"no operator computes {written} of {expr.dtype}")
        name, operands = found
        return self.emit(name, *(self.of(o, frame, sure) for o in operands))

    def _dim(self, dim: Dim) -> Expr:
        if isinstance(dim, int):
            return const(np.asarray(dim, np.int64))
        extents = self.emit("shape_to_tensor", ShapeExpr((dim,)))
        return self.emit("squeeze", extents, axis=(0,))

    def _mean(self, quotient: Binary, frame: Frame, sure: bool) -> Expr | None:
        """The mean, if `quotient` is a sum by the number of its terms."""
        if not isinstance(quotient.a, BufferLoad):
            return None
        total = self.of(quotient.a, frame, sure)
        known = self.sums.get(total)
        if known is None or not _is_count(quotient.b, known.count):
            return None
        return self.emit("mean", known.operand, axis=known.axes, keepdims=known.keepdims)

    def _choice(self, choice: Select, frame: Frame, sure: bool) -> Expr:
        """A choice by data is ``R.where``; one by axes cuts them, unless both sides are safe."""
        found = operator_of(choice)
        if found is not None and found[0] != "where":
            return self._scalar(choice, frame, sure)
        around = _number(choice.b)
        if around is not None and (box := ranges(choice.condition, frame)) is not None:
            padded = self._padded(choice.a, around, frame, box, sure)
            if padded is not None:
                return padded
        cut = cut_of(choice, frame)
        if cut is not None and choice.lazy:
            return self._joined(cut, frame, sure)
        sure = sure and not choice.lazy
        try:
            sides = [self.of(side, frame, sure) for side in (choice.a, choice.b)]
            return self.emit("where", self.of(choice.condition, frame), *sides)
        except Unreadable:
            if cut is None:
                raise
        return self._joined(cut, frame, sure)

    def _padded(
        self,
        inside: TirExpr,
        around: Constant,
        frame: Frame,
        box: Mapping[TirVar, tuple[Dim, Dim]],
        sure: bool,
    ) -> Expr | None:
        """``R.nn.pad`` of the value `inside` a box, with a number `around` it that is a float."""
        fill = float(around.data)
        if abs(fill) > MOST_EXACT and around.data.dtype.kind in "iu":
            return None
        widths: list[int] = []
        for axis in frame.axes:
            first, end = box.get(axis, (0, frame.extents[axis]))
            for width in (first, dims.sub(frame.extents[axis], end)):
                if not isinstance(width, int):
                    return None
                widths.append(width)
        inner = self._moved(frame, {a: first for a, (first, _) in box.items()}, box)
        moved = {a: inner.axes[frame.axes.index(a)] + from_dim(box[a][0]) for a in box}
        value = self.whole(substitute(inside, moved), inner, sure)
        return self.emit("nn.pad", value, pad_width=tuple(widths), pad_value=fill)

    def _moved(
        self, frame: Frame, first: Mapping[TirVar, Dim], box: Mapping[TirVar, tuple[Dim, Dim]]
    ) -> Frame:
        """`frame` over a box within it, with new variables for the axes that are cut."""
        new = {a: TirVar(a.name) for a in first}
        extents = dict(frame.extents)
        for axis, (begin, end) in box.items():
            extents[new[axis]] = dims.sub(end, begin)
        return Frame(tuple(new.get(a, a) for a in frame.axes), extents)

    def _joined(self, cut: Cut, frame: Frame, sure: bool) -> Expr:
        """``R.concat`` of the values before and after a cut."""
        extent = frame.extents[cut.axis]
        place = frame.axes.index(cut.axis)
        parts: list[Expr] = []
        for value, first, end in ((cut.before, 0, cut.at), (cut.after, cut.at, extent)):
            if dims.equal(first, end):
                continue
            inner = self._moved(frame, {cut.axis: first}, {cut.axis: (first, end)})
            moved = {cut.axis: inner.axes[place] + from_dim(first)}
            parts.append(self.whole(substitute(value, moved), inner, sure))
        return parts[0] if len(parts) == 1 else self.emit("concat", Tuple(tuple(parts)), axis=place)


def _number(expr: TirExpr) -> Constant | None:
    """The number that `expr` is: a literal, or one that is converted."""
    match expr:
        case Imm():
            return _literal(expr)
        case Cast(value=Imm(value=value, dtype=dtype)):
            return const(converted(np.asarray(value, dtype), expr.dtype))
        case _:
            return None


def _literal(literal: Imm) -> Constant:
    """A constant; literals of storage types are exact, as loops compute in a wider dtype."""
    with np.errstate(over="ignore"):
        value = np.asarray(literal.value).astype(np.dtype(literal.dtype))
    rounded = is_stored(literal.dtype) and float(value) != literal.value
    if rounded and not math.isnan(literal.value):
        raise Unreadable(f"{literal.value} is no {literal.dtype}")
    return const(value)


def _is_count(divisor: TirExpr, count: Dim) -> bool:
    match divisor:
        case Imm(value=value):
            return isinstance(count, int) and value == count
        case Cast(value=inner):
            dim = dim_of(inner)
            return dim is not None and dims.equal(dim, count)
        case _:
            return False
