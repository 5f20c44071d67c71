"""Values in views and kernels, to plain JSON data and back.

Equal struct infos are written once, and stand by number.  A dimension is a number, or the text of
an expression.  What reads checks: `ValueError` says that this was not written here.
"""

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.op import Op
from relax_egraph.ir.operators import find
from relax_egraph.ir.struct_info import ShapeExpr, ShapeStructInfo, TensorStructInfo
from relax_egraph.optimize.cache.naming import Nameless

T = TypeVar("T")

Data: TypeAlias = Any
"""Lists, dictionaries, strings, numbers, ``True``, ``False`` and ``None``."""

Attrs: TypeAlias = tuple[tuple[str, Attr], ...]


@dataclass(slots=True)
class Infos:
    """The struct infos of tensors that were written, by number."""

    numbers: dict[TensorStructInfo, int] = field(default_factory=dict[TensorStructInfo, int])

    def number(self, info: TensorStructInfo) -> int:
        """The number of `info`, which stands for it."""
        return self.numbers.setdefault(info, len(self.numbers))

    def data(self) -> Data:
        """All of them, in order; raises `Nameless` for a shape that is a variable."""
        return [[i.dtype, i.ndim, _shape_data(i)] for i in self.numbers]


def infos_of(data: Data) -> list[TensorStructInfo]:
    """The struct infos that stand by number."""
    return [_info(*row) for row in data]


def _shape_data(info: TensorStructInfo) -> Data:
    if info.shape is None:
        return None
    if info.dims is None:
        raise Nameless("a shape that is a variable")
    return list(map(dim_data, info.dims))


def _info(dtype: Data, ndim: Data, extents: Data) -> TensorStructInfo:
    check(dtype is None or dtype in TABLE)
    if extents is None:
        return TensorStructInfo(None, dtype, whole(ndim, -1))
    check(len(extents) == ndim)
    return TensorStructInfo(ShapeExpr(tuple(map(dim_of, extents))), dtype, ndim)


def check(holds: bool) -> None:
    """Raise `ValueError` unless what was read `holds`."""
    if not holds:
        raise ValueError("this is no plan")


def whole(data: Data, least: int = 0, below: float = math.inf) -> int:
    """A number from `least` on, which is less than `below`."""
    check(type(data) is int and least <= data < below)
    return data


def of_type(kind: type[T], data: Data) -> T:
    """`data`, which is of type `kind` and of no type derived from it."""
    check(type(data) is kind)
    return data


def dim_data(dim: Dim) -> Data:
    """A dimension."""
    return dim if isinstance(dim, int) else dims.text(dim)


def dim_of(data: Data) -> Dim:
    """The dimension that was written."""
    if type(data) is int:
        return whole(data)
    dim = dims.parse(of_type(str, data))
    check(dims.text(dim) == data)
    return dim


def attrs_data(attrs: Attrs) -> Data:
    """Attributes in order."""
    return [[name, value] for name, value in attrs]


def attrs_of(data: Data) -> Attrs:
    """The attributes that were written."""
    return tuple((of_type(str, name), _attr(value)) for name, value in data)


def _attr(data: Data) -> Attr:
    if type(data) is list:
        parts = cast(list[Data], data)
        check(all(type(part) in (int, float) for part in parts))
        return tuple(parts)
    check(data is None or type(data) in (int, float, bool, str))
    return data


def op_of(name: Data) -> Op:
    """The operator of this name."""
    op = find(of_type(str, name))
    if op is None:
        raise ValueError(f"there is no operator {name!r}")
    return op


def shape_data(shape: ShapeStructInfo) -> Data:
    """An operand that is a shape."""
    values = shape.values
    return {"ndim": shape.ndim, "shape": None if values is None else list(map(dim_data, values))}


def shape_of(data: Data) -> ShapeStructInfo:
    """The shape that was written."""
    values, ndim = data["shape"], whole(data["ndim"], -1)
    if values is None:
        return ShapeStructInfo(None, ndim)
    check(len(values) == ndim)
    return ShapeStructInfo(tuple(map(dim_of, values)), ndim)


def prim_data(prim: PrimValue) -> Data:
    """An operand that is a number of the host, or a truth value."""
    value = prim.value
    return {"prim": value if isinstance(value, float) else dim_data(value), "dtype": prim.dtype}


def prim_of(data: Data) -> PrimValue:
    """The number that was written."""
    value, dtype = data["prim"], data["dtype"]
    check(dtype in TABLE)
    return PrimValue(value if type(value) in (float, bool) else dim_of(value), dtype)
