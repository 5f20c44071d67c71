"""Broadcasting: the shape and dtype of an elementwise operator's result."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.requirements import record
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, tensor


def broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """The extent that `a` and `b` broadcast to; ``None`` if only the run decides it.

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
    is_false = dims.distinct(a, b) and dims.distinct(a, 1) and dims.distinct(b, 1)
    if record("broadcast", a, b, is_false):
        raise ValueError
    return None


def broadcast_shapes(a: Shape, b: Shape) -> Shape | None:
    """The shape that `a` and `b` broadcast to, as in numpy; ``None`` if only the run decides it."""
    short, long = sorted((a, b), key=len)
    head = long[: len(long) - len(short)]
    tail = [broadcast_dim(x, y) for x, y in zip(short, long[len(head) :], strict=True)]
    known = tuple(d for d in tail if d is not None)
    return (*head, *known) if len(known) == len(tail) else None


def broadcast(name: str, *infos: TensorStructInfo, dtype: str | None = None) -> TensorStructInfo:
    """The struct info of an elementwise result; `dtype` overrides that of the operands."""
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
    if x.dtype is not None and not is_float(x.dtype):
        raise IllTyped(f"R.{name} of {x}: needs a floating-point tensor")
    return tensor(x.dims, x.dtype, x.ndim)


def numeric(name: str, x: TensorStructInfo) -> None:
    """Raise `IllTyped` for boolean operands of an operator of numbers."""
    if x.dtype == "bool":
        raise IllTyped(f"R.{name} of {x}: needs a tensor of numbers")
