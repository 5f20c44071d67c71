"""Products of matrices."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast_shapes
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op(fusible=True)
def matmul(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out[…, i, j] = Σₖ x[…, i, k] · y[…, k, j]``; leading axes broadcast, as numpy's ``@``.

    An operand of rank 1 is a row (left) or a column (right), and its axis is not in the result.
    """
    asked = f"R.matmul of {x} and {y}"
    if x.ndim == 0 or y.ndim == 0:
        raise IllTyped(f"{asked}: needs operands of rank 1 or more")
    if x.dtype and y.dtype and x.dtype != y.dtype:
        raise IllTyped(f"{asked}: needs operands of one dtype")
    dtype = x.dtype if y.dtype else None
    ranks_known = x.ndim > 0 and y.ndim > 0
    ndim = max(x.ndim, y.ndim, 2) - (x.ndim == 1) - (y.ndim == 1) if ranks_known else -1
    if x.dims is None or y.dims is None:
        return tensor(None, dtype, ndim)
    a = x.dims if x.ndim > 1 else (1, *x.dims)
    b = y.dims if y.ndim > 1 else (*y.dims, 1)
    if dims.distinct(a[-1], b[-2]):
        raise IllTyped(
            f"{asked}: needs (…, m, k) and (…, k, n), "
            f"got k = {dims.text(a[-1])} and {dims.text(b[-2])}"
        )
    try:
        batch = broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise IllTyped(f"{asked}: the leading axes do not broadcast") from None
    if batch is None:
        return tensor(None, dtype, ndim)
    rows = () if x.ndim == 1 else (a[-2],)
    columns = () if y.ndim == 1 else (b[-1],)
    return tensor((*batch, *rows, *columns), dtype)
