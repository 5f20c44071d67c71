"""Losses, and dropout."""

from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.proven import need_equal
from relax_egraph.lower.legalize.reduce import sum_
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, from_dim


def dropout(data: te.Tensor, *, rate: float) -> tuple[te.Tensor, te.Tensor]:
    """`data` and a mask of ones: `rate` matters only in training."""
    del rate
    mask = te.compute(data.shape, lambda *_: te.const(1, data.dtype), "dropout_mask")
    return data, mask


def cross_entropy_with_logits(predictions: te.Tensor, labels: te.Tensor) -> te.Tensor:
    """The negated sum of products divided by the batch size; NaN for an empty batch."""
    need_equal(predictions.shape, labels.shape)
    product = te.compute(
        predictions.shape, lambda *i: predictions[i] * labels[i], "cross_entropy_product"
    )
    total = sum_(product, axis=None, keepdims=False)
    batch = predictions.shape[0] if len(predictions.shape) > 1 else 1
    count = te.cast(from_dim(batch), predictions.dtype)
    return te.compute((), lambda: -total[()] / count, "cross_entropy")


def nll_loss(
    predictions: te.Tensor,
    targets: te.Tensor,
    weights: te.Tensor | None = None,
    *,
    reduction: str,
    ignore_index: int,
) -> te.Tensor:
    """The loss of each target, which is clamped to the classes, at least one."""
    place = min(1, len(predictions.shape) - 1)
    shape, dtype = predictions.shape, predictions.dtype
    classes = shape[place]
    need_equal(targets.shape, (*shape[:place], *shape[place + 1 :]))
    if weights is not None:
        need_equal(weights.shape, (classes,))
    if not dims.prove_ge(classes, 1):
        raise NotLowerable("whether there is a class to choose is known only at run time")

    def target_class(i: tuple[TirVar, ...]) -> TirExpr:
        target = te.cast(targets[i], "int64")
        return te.maximum(te.minimum(target, from_dim(classes) - 1), 0)

    def unless_ignored(i: tuple[TirVar, ...], value: TirExpr) -> TirExpr:
        ignored = te.equal(te.cast(targets[i], "int64"), ignore_index)
        return te.select(ignored, te.const(0, dtype), value)

    def weight(*i: TirVar) -> TirExpr:
        return unless_ignored(
            i, te.const(1, dtype) if weights is None else weights[target_class(i)]
        )

    def loss(*i: TirVar) -> TirExpr:
        minus = -predictions[(*i[:place], target_class(i), *i[place:])]
        return unless_ignored(i, minus if weights is None else minus * weights[target_class(i)])

    each = te.compute(targets.shape, loss, "nll_loss")
    if reduction == "none":
        return each
    total = sum_(each, axis=None, keepdims=False)
    if reduction == "sum":
        return total
    share = sum_(te.compute(targets.shape, weight, "nll_weight"), axis=None, keepdims=False)
    return te.compute((), lambda: total[()] / share[()], "nll_mean")


LEGALIZE: Mapping[str, Legalize] = {
    "nn.dropout": dropout,
    "nn.cross_entropy_with_logits": cross_entropy_with_logits,
    "nn.nll_loss": nll_loss,
}
