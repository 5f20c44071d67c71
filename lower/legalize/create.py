"""Tensors that are created from a shape; a Python number is a dimension or a float."""

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from relax_egraph.errors import NotLowerable
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.ir.ops.sequence import arange_count
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.tir import te
from relax_egraph.tir.call_te import TypedFloat, TypedInt
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim

Host: TypeAlias = Dim | float


def filled(name: str, value: float, shape: Shape, dtype: str) -> te.Tensor:
    """A tensor filled with `value`."""
    return te.compute(shape, lambda *_: te.const(value, dtype), name)


def full(shape: Shape, fill_value: te.Tensor, *, dtype: str | None) -> te.Tensor:
    """A tensor filled with the single element of `fill_value`."""
    value = te.cast(fill_value.at(), dtype or fill_value.dtype)
    return te.compute(shape, lambda *_: value, "full")


def full_like(x: te.Tensor, fill_value: te.Tensor, *, dtype: str | None) -> te.Tensor:
    """A tensor of the shape of `x`, filled with the single element of `fill_value`."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype)


def ones(shape: Shape, *, dtype: str) -> te.Tensor:
    """A tensor of ones."""
    return filled("ones", 1, shape, dtype)


def ones_like(x: te.Tensor, *, dtype: str | None) -> te.Tensor:
    """A tensor of ones with the shape of `x`."""
    return filled("ones_like", 1, x.shape, dtype or x.dtype)


def zeros(shape: Shape, *, dtype: str) -> te.Tensor:
    """A tensor of zeros."""
    return filled("zeros", 0, shape, dtype)


def zeros_like(x: te.Tensor, *, dtype: str | None) -> te.Tensor:
    """A tensor of zeros with the shape of `x`."""
    return filled("zeros_like", 0, x.shape, dtype or x.dtype)


def arange(start: Host, end: Host | None = None, step: Host = 1, *, dtype: str | None) -> te.Tensor:
    """``out[i] = start + i·step``, computed in float64 if any number is a float, else in int64."""
    first, last = (0, start) if end is None else (start, end)
    count = arange_count(first, last, step)
    if count is None:
        raise NotLowerable("how many numbers there are is known only at run time")
    has_float = any(isinstance(v, float) for v in (first, last, step))
    result_dtype = dtype or ("float32" if has_float else "int64")

    def value(i: TirVar) -> TirExpr:
        if has_float:
            at = _double(first) + te.cast(i, "float64") * _double(step)
        else:
            at = _index(first) + i * _index(step)
        return te.cast(te.cast(at, "int64") if is_integer(result_dtype) else at, result_dtype)

    return te.compute((count,), value, "arange")


def prim_to_tensor(value: Host, *, dtype: str) -> te.Tensor:
    """The number as the only element."""
    number = _double(value) if isinstance(value, float) else _index(value)
    return te.compute((), lambda: te.cast(number, dtype), "prim_to_tensor")


def one_hot(
    indices: te.Tensor, on_value: Host, off_value: Host, *, depth: int, axis: int
) -> te.Tensor:
    """`on_value` where the index along the new axis equals that in `indices`, else `off_value`."""
    place = axis % (len(indices.shape) + 1)
    shape = (*indices.shape[:place], depth, *indices.shape[place:])
    on, off = _scalar(on_value), _scalar(off_value)

    def value(*i: TirVar) -> TirExpr:
        index = te.cast(indices[(*i[:place], *i[place + 1 :])], "int64")
        return te.select(te.equal(index, i[place]), on, off)

    return te.compute(shape, value, "one_hot")


def eye(n: Dim, m: Dim | None = None, k: Dim = 0, *, dtype: str) -> te.Tensor:
    """1 where ``j = i + k``, else 0."""
    return _diagonal("eye", (n, n if m is None else m), k, dtype)


def eye_like(x: te.Tensor, k: Dim = 0, *, dtype: str | None) -> te.Tensor:
    """1 where ``j = i + k``, else 0, with the shape of `x`."""
    return _diagonal("eye_like", x.shape, k, dtype or x.dtype)


def tril(x: te.Tensor, k: Dim = 0) -> te.Tensor:
    """`x` where ``j ≤ i + k``, else 0."""
    return _triangle("tril", x, lambda i, j: j <= i + from_dim(k))


def triu(x: te.Tensor, k: Dim = 0) -> te.Tensor:
    """`x` where ``j ≥ i + k``, else 0."""
    return _triangle("triu", x, lambda i, j: j >= i + from_dim(k))


def hamming_window(
    window_size: Dim, periodic: Host = 1, alpha: float = 0.54, beta: float = 0.46, *, dtype: str
) -> te.Tensor:
    """``alpha - beta · cos(2πi / N)`` in float64; a window of one element is 1."""
    if not isinstance(periodic, int | float):
        raise NotLowerable("whether the window is periodic is known only at run time")
    size = from_dim(window_size)
    last = te.maximum(size if periodic else size - 1, 1)

    def value(i: TirVar) -> TirExpr:
        turn = te.cast(i, "float64") * (2 * math.pi) / te.cast(last, "float64")
        element = _double(alpha) - _double(beta) * te.cos(turn)
        return te.cast(te.select(te.equal(size, 1), _double(1), element), dtype)

    return te.compute((window_size,), value, "hamming_window")


def _diagonal(name: str, shape: Shape, k: Dim, dtype: str) -> te.Tensor:
    one, zero = te.const(1, dtype), te.const(0, dtype)

    def value(i: TirVar, j: TirVar) -> TirExpr:
        return te.select(te.equal(j, i + from_dim(k)), one, zero)

    return te.compute(shape, value, name)


def _triangle(name: str, x: te.Tensor, keeps: Callable[[TirVar, TirVar], TirExpr]) -> te.Tensor:
    def value(*i: TirVar) -> TirExpr:
        return te.select(keeps(i[-2], i[-1]), x[i], te.const(0, x.dtype))

    return te.compute(x.shape, value, name)


def _index(value: Host) -> TirExpr:
    """An integral number as index arithmetic."""
    return from_dim(int(value) if isinstance(value, float) else value)


def _double(value: Host) -> TirExpr:
    """A number as a float64."""
    if isinstance(value, int | float):
        return te.const(value, "float64")
    return te.cast(from_dim(value), "float64")


def _scalar(value: Host) -> TirExpr:
    """A number as a literal of its own dtype."""
    if isinstance(value, TypedFloat | TypedInt):
        return te.const(value, value.dtype)
    return te.const(value, "float64") if isinstance(value, float) else from_dim(value)


LEGALIZE: Mapping[str, Legalize] = {
    "full": full,
    "full_like": full_like,
    "ones": ones,
    "ones_like": ones_like,
    "zeros": zeros,
    "zeros_like": zeros_like,
    "arange": arange,
    "prim_to_tensor": prim_to_tensor,
    "one_hot": one_hot,
    "eye": eye,
    "eye_like": eye_like,
    "tril": tril,
    "triu": triu,
    "hamming_window": hamming_window,
}
