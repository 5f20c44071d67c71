"""Losses, and dropout, in the namespace ``R.nn``."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.operand_checks import has_rank, has_shape, is_vector, one_float, subject_of
from relax_egraph.ir.requirements import expect
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor

REDUCTIONS = ("mean", "sum", "none")


@op("nn")
def dropout(data: TensorStructInfo, *, rate: float = 0.5) -> StructInfo:
    """``out = data, 1``: nothing is dropped, as at inference; the mask is of ones.

    `rate` is the probability that training would drop an element with.
    """
    if not 0 <= rate <= 1:
        raise IllTyped(f"{subject_of('nn.dropout', data)}: rate is {rate}, needs 0 to 1")
    same = tensor(data.dims, data.dtype, data.ndim)
    return TupleStructInfo((same, same))


@op("nn")
def cross_entropy_with_logits(
    predictions: TensorStructInfo, labels: TensorStructInfo
) -> StructInfo:
    """``out = -Σ predictions · labels / N``, `N` the first extent, or 1 where the rank is below 2.

    `predictions` are logarithms of probabilities.
    """
    subject = subject_of("nn.cross_entropy_with_logits", predictions, labels)
    dtype = one_float(subject, predictions, labels)
    if predictions.ndim >= 0:
        has_rank(subject, "labels", labels, predictions.ndim)
    has_shape(subject, "labels", labels, predictions.dims)
    return tensor((), dtype)


@op("nn")
def nll_loss(
    predictions: TensorStructInfo,
    targets: TensorStructInfo,
    weights: TensorStructInfo | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> StructInfo:
    """``out[n, …] = -predictions[n, t, …] · weights[t]`` for ``t = targets[n, …]``, or reduced.

    Predictions are (N, C, …) and targets (N, …), or (C,) and (); weights are (C,), by default
    ones.  Where the target is `ignore_index` the weight is 0 and so is the loss; any other
    target is clamped to 0..C-1.  "mean" divides the sum by that of the weights.
    """
    operands = (predictions, targets) if weights is None else (predictions, targets, weights)
    subject = subject_of("nn.nll_loss", *operands)
    dtype = one_float(subject, predictions, *operands[2:])
    if targets.dtype is not None and not is_integer(targets.dtype):
        raise IllTyped(f"{subject}: needs targets that are integers")
    if reduction not in REDUCTIONS:
        raise IllTyped(f'{subject}: reduction is {reduction!r}, needs "mean", "sum" or "none"')
    if predictions.ndim == 0:
        raise IllTyped(f"{subject}: predictions has rank 0, needs 1 or more")
    rank = max(predictions.ndim - 1, -1)
    if rank >= 0:
        has_rank(subject, "targets", targets, rank)
    known = predictions.dims
    place = 0 if rank == 0 else 1
    each = None if known is None else (*known[:place], *known[place + 1 :])
    has_shape(subject, "targets", targets, each)
    if known is not None:
        expect(1, known[place])
    if weights is not None:
        is_vector(subject, "weights", weights, None if known is None else known[place])
    if reduction != "none":
        return tensor((), dtype)
    return tensor(targets.dims if each is None else each, dtype, max(rank, targets.ndim))
