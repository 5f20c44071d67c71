"""Draws from distributions, given the random numbers."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.ops.dtypes import INTEGERS, index_dtype
from relax_egraph.ir.requirements import differ, exceeds, expect
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor

_NAME = "multinomial_from_uniform"


@op()
def multinomial_from_uniform(
    prob: TensorStructInfo,
    uniform_sample: TensorStructInfo,
    sample_indices: TensorStructInfo | None = None,
    *,
    dtype: str = "int64",
) -> StructInfo:
    """``out[i, 0]`` is the least ``j`` with ``uniform_sample[i, 0] < Σ prob[r, k], k ≤ j``.

    The last ``j`` if there is none.  The row ``r`` is ``sample_indices[i, 0]``, clamped to the rows
    that there are, or ``i``.  Sums are of float64.
    """
    floating(_NAME, prob)
    floating(_NAME, uniform_sample)
    index_dtype(_NAME, prob, dtype)
    if sample_indices is not None and sample_indices.dtype not in (None, *INTEGERS):
        raise IllTyped(f"R.{_NAME} of {sample_indices}: needs a tensor of integers")
    samples = [i for i in (uniform_sample, sample_indices) if i is not None]
    operands = ", ".join(map(str, (prob, *samples)))
    if any(i.ndim not in (-1, 2) for i in (prob, *samples)):
        raise IllTyped(f"R.{_NAME} of {operands}: needs tensors of rank 2")
    if prob.dims is not None and exceeds(1, prob.dims[1]):
        raise IllTyped(f"R.{_NAME} of {operands}: needs an outcome to draw")
    if any(i.dims is not None and differ(i.dims[1], 1) for i in samples):
        raise IllTyped(f"R.{_NAME} of {operands}: needs samples of one column")
    if sample_indices is not None and prob.dims is not None:
        expect(1, prob.dims[0])
    beside = prob if sample_indices is None else sample_indices
    drawn = uniform_sample.dims
    if drawn is None:
        return tensor(None, dtype, 2)
    if beside.dims is not None and differ(beside.dims[0], drawn[0]):
        raise IllTyped(f"R.{_NAME} of {operands}: needs a distribution for each sample")
    return tensor((drawn[0], 1), dtype)
