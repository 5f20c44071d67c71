"""Operators that compute each element from the elements at its index, with broadcasting."""

from collections.abc import Callable, Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir.ops.broadcast import broadcast_shapes
from relax_egraph.ir.struct_info import Shape
from relax_egraph.tir import te
from relax_egraph.tir.expr import Operand, TirExpr, TirVar, binary

Scalar = Callable[..., TirExpr]
"""An element of the result from one element of each operand."""


def broadcast(*shapes: Shape) -> Shape:
    """The shape that all of `shapes` broadcast to; raises `NotLowerable` if it is not proven."""
    result: Shape = ()
    for shape in shapes:
        known = broadcast_shapes(result, shape)
        if known is None:
            raise NotLowerable("whether the shapes broadcast is known only at run time")
        result = known
    return result


def element(x: te.Tensor, shape: Shape, axes: tuple[TirVar, ...]) -> TirExpr:
    """The element of `x` at `axes` of `shape`, to which `x` broadcasts."""
    skipped = len(shape) - len(x.shape)
    at: list[Operand] = [
        0 if extent == 1 and wanted != 1 else axis
        for extent, wanted, axis in zip(x.shape, shape[skipped:], axes[skipped:], strict=True)
    ]
    return x[tuple(at)]


def elementwise(name: str, scalar: Scalar, *operands: te.Tensor) -> te.Tensor:
    """``scalar`` of the elements of `operands`, broadcast to one shape."""
    shape = broadcast(*(x.shape for x in operands))
    return te.compute(shape, lambda *i: scalar(*(element(x, shape, i) for x in operands)), name)


def add_scalars(x: TirExpr, y: TirExpr) -> TirExpr:
    """``x + y``; of booleans ``x or y``, as numpy has it."""
    return binary("or", x, y) if x.dtype == "bool" else x + y


def multiply_scalars(x: TirExpr, y: TirExpr) -> TirExpr:
    """``x · y``; of booleans ``x and y``, as numpy has it."""
    return binary("and", x, y) if x.dtype == "bool" else x * y


def _negative(x: TirExpr) -> TirExpr:
    # 0 - x is never -0.0.
    return x * -1 if x.dtype.startswith("float") else -_numeric("negative", x)


def _subtract(x: TirExpr, y: TirExpr) -> TirExpr:
    return _numeric("subtract", x) - y


def _divide(x: TirExpr, y: TirExpr) -> TirExpr:
    return x / y


def _greater(x: TirExpr, y: TirExpr) -> TirExpr:
    return x > y


def _less(x: TirExpr, y: TirExpr) -> TirExpr:
    return x < y


def _abs(x: TirExpr) -> TirExpr:
    return x if x.dtype in ("bool", "uint8") else te.abs(x)


def _fma(x: TirExpr, y: TirExpr, z: TirExpr) -> TirExpr:
    if x.dtype.startswith("float"):
        return te.fma(x, y, z)
    return add_scalars(multiply_scalars(x, y), z)


def _numeric(name: str, x: TirExpr) -> TirExpr:
    if x.dtype == "bool":
        raise NotLowerable(f"R.{name} of booleans: needs numbers")
    return x


SCALARS: Mapping[str, Scalar] = {
    "abs": _abs,
    "negative": _negative,
    "exp": te.exp,
    "log": te.log,
    "sqrt": te.sqrt,
    "rsqrt": te.rsqrt,
    "tanh": te.tanh,
    "erf": te.erf,
    "sigmoid": te.sigmoid,
    "add": add_scalars,
    "subtract": _subtract,
    "multiply": multiply_scalars,
    "divide": _divide,
    "power": te.pow,
    "maximum": te.maximum,
    "minimum": te.minimum,
    "greater": _greater,
    "less": _less,
    "equal": te.equal,
    "ewise_fma": _fma,
    "where": te.select,
}
"""The elementwise operators without attributes: the meaning for one element."""


def astype(x: te.Tensor, *, dtype: str) -> te.Tensor:
    """``x`` converted to `dtype`; to ``bool``, whether it is not 0."""
    return te.compute(x.shape, lambda *i: te.cast(x[i], dtype), "astype")
