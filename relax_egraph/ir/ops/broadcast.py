"""Elementwise operators: each element of the result from the elements at its index."""

from collections.abc import Callable

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import Op, op
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo, tensor

Unary = Callable[[TensorStructInfo], StructInfo]


def broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """The extent that `a` and `b` broadcast to; ``None`` if it is decided only at run time.

    Raises ``ValueError`` if they are proven not to broadcast.
    """
    if a == b:
        return a
    if a == 1:
        return b
    if b == 1:
        return a
    if dims.equal(a, b):
        return a
    if isinstance(a, int) and isinstance(b, int):
        raise ValueError
    return None


def broadcast_shapes(a: Shape, b: Shape) -> Shape | None:
    """The shape that `a` and `b` broadcast to, as numpy does; ``None`` if not decided here."""
    short, long = sorted((a, b), key=len)
    head = long[: len(long) - len(short)]
    tail = [broadcast_dim(x, y) for x, y in zip(short, long[len(head) :], strict=True)]
    known = tuple(d for d in tail if d is not None)
    return (*head, *known) if len(known) == len(tail) else None


def broadcast(name: str, *infos: TensorStructInfo, dtype: str | None = None) -> TensorStructInfo:
    """The struct info of an elementwise result; `dtype` where it is not the operands' own."""
    operands = ", ".join(map(str, infos))
    dtypes = {i.dtype for i in infos if i.dtype is not None}
    if len(dtypes) > 1:
        raise IllTyped(f"R.{name} of {operands}: needs operands of one dtype")
    result = dtype or (dtypes.pop() if len(dtypes) == 1 and all(i.dtype for i in infos) else None)
    shape: Shape | None = ()
    ndim = max((i.ndim for i in infos), default=0) if all(i.ndim >= 0 for i in infos) else -1
    for info in infos:
        if shape is None or info.dims is None:
            shape = None
            continue
        try:
            shape = broadcast_shapes(shape, info.dims)
        except ValueError:
            raise IllTyped(f"R.{name} of {operands}: the shapes do not broadcast") from None
    return tensor(shape, result, ndim)


def floating(name: str, x: TensorStructInfo) -> TensorStructInfo:
    """The struct info of an elementwise function of floating-point tensors."""
    if x.dtype is not None and not x.dtype.startswith("float"):
        raise IllTyped(f"R.{name} of {x}: needs a floating-point tensor")
    return tensor(x.dims, x.dtype, x.ndim)


def numeric(name: str, x: TensorStructInfo) -> None:
    """Refuse boolean operands of an operator that has no meaning for them."""
    if x.dtype == "bool":
        raise IllTyped(f"R.{name} of {x}: needs a tensor of numbers")


def _unary(rule: Unary) -> Op:
    return op(elementwise=True)(rule)


def _binary(rule: Callable[[TensorStructInfo, TensorStructInfo], StructInfo]) -> Op:
    return op(elementwise=True)(rule)


@_unary
def abs_(x: TensorStructInfo) -> StructInfo:
    """``out = |x|``."""
    return tensor(x.dims, x.dtype, x.ndim)


@_unary
def negative(x: TensorStructInfo) -> StructInfo:
    """``out = -x``, of numbers."""
    numeric("negative", x)
    return tensor(x.dims, x.dtype, x.ndim)


@_unary
def exp(x: TensorStructInfo) -> StructInfo:
    """``out = eˣ``."""
    return floating("exp", x)


@_unary
def log(x: TensorStructInfo) -> StructInfo:
    """``out = ln x``."""
    return floating("log", x)


@_unary
def sqrt(x: TensorStructInfo) -> StructInfo:
    """``out = √x``."""
    return floating("sqrt", x)


@_unary
def rsqrt(x: TensorStructInfo) -> StructInfo:
    """``out = 1 / √x``."""
    return floating("rsqrt", x)


@_unary
def tanh(x: TensorStructInfo) -> StructInfo:
    """``out = tanh x``."""
    return floating("tanh", x)


@_unary
def erf(x: TensorStructInfo) -> StructInfo:
    """``out = 2/√π · ∫₀ˣ exp(-t²) dt``."""
    return floating("erf", x)


@_unary
def sigmoid(x: TensorStructInfo) -> StructInfo:
    """``out = 1 / (1 + e⁻ˣ)``."""
    return floating("sigmoid", x)


@_binary
def add(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x + y``."""
    return broadcast("add", x, y)


@_binary
def subtract(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x - y``, of numbers."""
    for operand in (x, y):
        numeric("subtract", operand)
    return broadcast("subtract", x, y)


@_binary
def multiply(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x · y``."""
    return broadcast("multiply", x, y)


@_binary
def divide(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x / y``, of floating-point tensors."""
    for operand in (x, y):
        floating("divide", operand)
    return broadcast("divide", x, y)


@_binary
def power(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x ^ y``, of floating-point tensors."""
    for operand in (x, y):
        floating("power", operand)
    return broadcast("power", x, y)


@_binary
def maximum(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = max(x, y)``; NaN if either is NaN."""
    return broadcast("maximum", x, y)


@_binary
def minimum(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = min(x, y)``; NaN if either is NaN."""
    return broadcast("minimum", x, y)


@_binary
def greater(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x > y``, boolean."""
    return broadcast("greater", x, y, dtype="bool")


@_binary
def less(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x < y``, boolean."""
    return broadcast("less", x, y, dtype="bool")


@_binary
def equal(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = (x = y)``, boolean."""
    return broadcast("equal", x, y, dtype="bool")


@op(elementwise=True)
def ewise_fma(x: TensorStructInfo, y: TensorStructInfo, z: TensorStructInfo) -> StructInfo:
    """``out = x · y + z``."""
    return broadcast("ewise_fma", x, y, z)


@op(elementwise=True)
def where(condition: TensorStructInfo, x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out = x`` where the boolean `condition` holds, else ``y``."""
    if condition.dtype not in (None, "bool"):
        raise IllTyped(f"R.where: operand condition is {condition}, needs a boolean tensor")
    chosen = broadcast("where", x, y)
    shaped = broadcast("where", tensor(condition.dims, chosen.dtype, condition.ndim), chosen)
    return tensor(shaped.dims, chosen.dtype, shaped.ndim)


@op(elementwise=True)
def astype(x: TensorStructInfo, *, dtype: str) -> StructInfo:
    """``out = x`` converted to `dtype`; floats are truncated towards zero to integers."""
    return tensor(x.dims, dtype, x.ndim)
