"""Gradients of operators, in the namespace ``R.grad``: of the operand, from that of the result."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import OPS, op
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op("grad")
def nll_loss_backward(
    output_grad: TensorStructInfo,
    predictions: TensorStructInfo,
    targets: TensorStructInfo,
    weights: TensorStructInfo | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> StructInfo:
    """``out[n, t, …] = -output_grad · weights[t]`` for ``t = targets[n, …]``, elsewhere 0.

    The gradient of `nll_loss`: "mean" divides by the sum of the weights.
    """
    loss = OPS["nn.nll_loss"].rule(
        predictions, targets, weights, reduction=reduction, ignore_index=ignore_index
    )
    of_each = output_grad.ndim == targets.ndim  # which "mean" and "sum" spread, too
    return _like("nll_loss_backward", output_grad, predictions, targets if of_each else loss)


@op("grad")
def max_pool2d_backward(
    output_grad: TensorStructInfo,
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1, 1),
    strides: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> StructInfo:
    """The gradient of `max_pool2d`: that of each window goes to its first greatest element."""
    attrs = (pool_size, strides, padding, dilation, ceil_mode, count_include_pad)
    return _pool("max_pool2d", output_grad, data, attrs, layout, out_layout)


@op("grad")
def avg_pool2d_backward(
    output_grad: TensorStructInfo,
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1, 1),
    strides: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> StructInfo:
    """The gradient of `avg_pool2d`: that of each window in equal parts to what it counts."""
    attrs = (pool_size, strides, padding, dilation, ceil_mode, count_include_pad)
    return _pool("avg_pool2d", output_grad, data, attrs, layout, out_layout)


@op("grad")
def take_backward(
    output_grad: TensorStructInfo,
    x: TensorStructInfo,
    indices: TensorStructInfo,
    *,
    axis: int | None = None,
) -> StructInfo:
    """The gradient of `take`: `output_grad` added up at the indices; outside they are clamped."""
    taken = OPS["take"].rule(x, indices, axis=axis)
    return _like("take_backward", output_grad, x, taken)


def _pool(
    name: str,
    output_grad: TensorStructInfo,
    data: TensorStructInfo,
    attrs: tuple[object, ...],
    layout: str,
    out_layout: str | None,
) -> StructInfo:
    names = ("pool_size", "strides", "padding", "dilation", "ceil_mode", "count_include_pad")
    by_name = dict(zip(names, attrs, strict=True))
    pooled = OPS[f"nn.{name}"].rule(data, **by_name, layout=layout, out_layout=out_layout)
    return _like(f"{name}_backward", output_grad, data, pooled)


def _like(
    name: str, output_grad: TensorStructInfo, operand: TensorStructInfo, result: StructInfo
) -> StructInfo:
    """The struct info of `operand`; raises `IllTyped` unless `output_grad` is like `result`."""
    if isinstance(result, TensorStructInfo):
        known = result.dims is not None and output_grad.dims is not None
        a, b = (result.dims or (), output_grad.dims or ()) if known else ((), ())
        ranks = {result.ndim, output_grad.ndim} - {-1}
        if len(ranks) > 1 or any(map(differ, a, b)):
            raise IllTyped(f"R.grad.{name}: the gradient is {output_grad}, needs {result}")
    return tensor(operand.dims, operand.dtype, operand.ndim)
