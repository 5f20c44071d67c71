"""Products of matrices, vectors and tensors."""

from collections.abc import Sequence

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import broadcast_dim, broadcast_shapes
from relax_egraph.ir.ops.operand_checks import has_rank, subject_of
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor
from relax_egraph.ir.subscripts import is_broadcast, output_rank, read_subscripts


@op(fusible=True)
def matmul(x: TensorStructInfo, y: TensorStructInfo) -> StructInfo:
    """``out[…, i, j] = Σₖ x[…, i, k] · y[…, k, j]``; leading axes broadcast, as numpy's ``@``.

    An operand of rank 1 is a row (left) or a column (right), and its axis is not in the result.
    """
    subject = f"R.matmul of {x} and {y}"
    if x.ndim == 0 or y.ndim == 0:
        raise IllTyped(f"{subject}: needs operands of rank 1 or more")
    if x.dtype and y.dtype and x.dtype != y.dtype:
        raise IllTyped(f"{subject}: needs operands of one dtype")
    dtype = x.dtype if y.dtype else None
    ranks_known = x.ndim > 0 and y.ndim > 0
    ndim = max(x.ndim, y.ndim, 2) - (x.ndim == 1) - (y.ndim == 1) if ranks_known else -1
    if x.dims is None or y.dims is None:
        return tensor(None, dtype, ndim)
    a = x.dims if x.ndim > 1 else (1, *x.dims)
    b = y.dims if y.ndim > 1 else (*y.dims, 1)
    if differ(a[-1], b[-2]):
        raise IllTyped(
            f"{subject}: needs (…, m, k) and (…, k, n), "
            f"got k = {dims.text(a[-1])} and {dims.text(b[-2])}"
        )
    try:
        batch = broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise IllTyped(f"{subject}: the leading axes do not broadcast") from None
    if batch is None:
        return tensor(None, dtype, ndim)
    rows = () if x.ndim == 1 else (a[-2],)
    columns = () if y.ndim == 1 else (b[-1],)
    return tensor((*batch, *rows, *columns), dtype)


@op()
def outer(x1: TensorStructInfo, x2: TensorStructInfo) -> StructInfo:
    """``out[i, j] = x1[i] · x2[j]``, of vectors."""
    subject = subject_of("outer", x1, x2)
    has_rank(subject, "x1", x1, 1)
    has_rank(subject, "x2", x2, 1)
    dtype = _one_dtype(subject, (x1, x2))
    if x1.dims is None or x2.dims is None:
        return tensor(None, dtype, 2)
    return tensor((*x1.dims, *x2.dims), dtype)


@op()
def einsum(operands: TupleStructInfo, *, subscripts: str) -> StructInfo:
    """``out[output] = Σ Π operands[term]`` over the letters that the output has not.

    As in numpy, except that all axes of one letter have one extent.
    """
    tensors = tuple(o for o in operands.fields if isinstance(o, TensorStructInfo))
    subject = f'{subject_of("einsum", *tensors)} by "{subscripts}"'
    dtype = _one_dtype(subject, tensors)
    try:
        if any(x.ndim < 0 for x in tensors):
            return tensor(None, dtype, output_rank(subscripts, len(tensors)))
        read = read_subscripts(subscripts, [x.ndim for x in tensors])
    except ValueError as problem:
        raise IllTyped(f"{subject}: {problem}") from None
    extents: dict[str, Dim | None] = {}
    for x, term in zip(tensors, read.terms, strict=True):
        for label, extent in zip(term, x.dims or (None,) * x.ndim, strict=True):
            before = extents.setdefault(label, extent)
            extents[label] = _joined(subject, label, before, extent)
    shape = [extents[label] for label in read.output]
    known = tuple(d for d in shape if d is not None)
    return tensor(known if len(known) == len(shape) else None, dtype, len(shape))


def _joined(subject: str, label: str, a: Dim | None, b: Dim | None) -> Dim | None:
    """The extent of an axis `label` that has the extents `a` and `b` in two operands."""
    if is_broadcast(label):
        try:
            return None if a is None or b is None else broadcast_dim(a, b)
        except ValueError:
            raise IllTyped(f"{subject}: the axes of the ellipsis do not broadcast") from None
    if a is None or b is None:
        return b if a is None else a
    if differ(a, b):
        raise IllTyped(f'{subject}: "{label}" is of extent {dims.text(a)} and of {dims.text(b)}')
    return b if isinstance(b, int) else a


def _one_dtype(subject: str, infos: Sequence[TensorStructInfo]) -> str | None:
    """The dtype of `infos`; raises `IllTyped` unless they have one."""
    known = {i.dtype for i in infos}
    if len(known - {None}) > 1:
        raise IllTyped(f"{subject}: needs operands of one dtype")
    return known.pop() if len(known) == 1 else None
