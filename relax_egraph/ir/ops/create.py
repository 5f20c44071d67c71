"""Tensors of one value, and one-hot vectors."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import DTYPES, is_integer
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.join import inserted_axis
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    shape_text,
    tensor,
)


def known_dtype(name: str, dtype: str) -> str:
    """`dtype`; raises `IllTyped` unless it is the name of a dtype."""
    if dtype not in DTYPES:
        raise IllTyped(f'R.{name}: no dtype "{dtype}", there are {", ".join(DTYPES)}')
    return dtype


def integer(name: str, what: str, operand: PrimStructInfo) -> PrimStructInfo:
    """`operand`; raises `IllTyped` unless it is an integer."""
    if not is_integer(operand.dtype):
        raise IllTyped(f"R.{name}: {what} is of {operand.dtype}, needs an integer")
    return operand


def extent(name: str, what: str, operand: PrimStructInfo) -> Dim | None:
    """The extent `operand`, if it is known; raises `IllTyped` for what cannot be an extent."""
    value = integer(name, what, operand).value
    if isinstance(value, int) and value < 0:
        raise IllTyped(f"R.{name}: {what} is {value}, needs 0 or more")
    return value


@op()
def full(
    shape: ShapeStructInfo, fill_value: TensorStructInfo, *, dtype: str | None = None
) -> StructInfo:
    """``out = fill_value`` everywhere, in `dtype`; by default in its own."""
    return _filled("full", shape, _fill_dtype("full", fill_value, fill_value, dtype))


@op()
def full_like(
    x: TensorStructInfo, fill_value: TensorStructInfo, *, dtype: str | None = None
) -> StructInfo:
    """``out = fill_value`` everywhere, with the shape of `x`, and its dtype by default."""
    return tensor(x.dims, _fill_dtype("full_like", x, fill_value, dtype), x.ndim)


@op()
def ones(shape: ShapeStructInfo, *, dtype: str) -> StructInfo:
    """``out = 1`` everywhere."""
    return _filled("ones", shape, known_dtype("ones", dtype))


@op()
def ones_like(x: TensorStructInfo, *, dtype: str | None = None) -> StructInfo:
    """``out = 1`` everywhere, with the shape of `x`, and its dtype by default."""
    return tensor(x.dims, known_dtype("ones_like", dtype) if dtype else x.dtype, x.ndim)


@op()
def zeros(shape: ShapeStructInfo, *, dtype: str) -> StructInfo:
    """``out = 0`` everywhere."""
    return _filled("zeros", shape, known_dtype("zeros", dtype))


@op()
def zeros_like(x: TensorStructInfo, *, dtype: str | None = None) -> StructInfo:
    """``out = 0`` everywhere, with the shape of `x`, and its dtype by default."""
    return tensor(x.dims, known_dtype("zeros_like", dtype) if dtype else x.dtype, x.ndim)


def _filled(name: str, shape: ShapeStructInfo, dtype: str | None) -> StructInfo:
    values = shape.values
    if values is not None and any(isinstance(d, int) and d < 0 for d in values):
        raise IllTyped(f"R.{name}: the shape is {shape_text(values)}, needs extents of 0 or more")
    return tensor(values, dtype, shape.ndim)


def _fill_dtype(
    name: str, source: TensorStructInfo, fill: TensorStructInfo, dtype: str | None
) -> str | None:
    if fill.ndim > 0:
        raise IllTyped(f"R.{name}: fill_value is {fill}, needs a tensor of rank 0")
    return known_dtype(name, dtype) if dtype else source.dtype


@op()
def one_hot(
    indices: TensorStructInfo,
    on_value: PrimStructInfo,
    off_value: PrimStructInfo,
    *,
    depth: int,
    axis: int = -1,
) -> StructInfo:
    """``out = on_value`` where the index along the new axis `axis` is `indices`, else `off_value`.

    An index outside of 0 … `depth` - 1 gives `off_value` everywhere.  The dtype is the values'.
    """
    subject = f"R.one_hot of {indices}"
    if indices.dtype is not None and not is_integer(indices.dtype):
        raise IllTyped(f"{subject}: needs a tensor of integers")
    if on_value.dtype != off_value.dtype:
        values = f"on_value is of {on_value.dtype}, off_value of {off_value.dtype}"
        raise IllTyped(f"{subject}: {values}, needs values of one dtype")
    if depth < 1:
        raise IllTyped(f"{subject}: depth is {depth}, needs 1 or more")
    dtype = on_value.dtype if all(map(_has_dtype, (on_value, off_value))) else None
    if indices.ndim < 0:
        return tensor(None, dtype)
    place = inserted_axis("one_hot", indices, axis)
    known = indices.dims
    if known is None:
        return tensor(None, dtype, indices.ndim + 1)
    return tensor((*known[:place], depth, *known[place:]), dtype)


def _has_dtype(operand: PrimStructInfo) -> bool:
    """Whether the dtype of a number is its own, not that of Python's numbers."""
    is_literal = operand.number is not None or isinstance(operand.value, int)
    return is_literal or operand.dtype in ("int64", "float64")
