"""Softmax, and the table of normalisations; those by mean and variance are in `moments`."""

from collections.abc import Callable, Mapping

from relax_egraph.lower.legalize import moments
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.lower.legalize.reduce import without
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr
from relax_egraph.tir.tensor import Reduction


def softmax(x: te.Tensor, *, axis: int) -> te.Tensor:
    """Softmax in four stages: the maximum, ``exp(x - max)``, its sum, and the quotient."""
    place = axis % len(x.shape)
    _, e, total = _exponentials(x, place, "softmax")
    return te.compute(x.shape, lambda *i: e[i] / _at(total, i, place), "softmax")


def log_softmax(data: te.Tensor, *, axis: int) -> te.Tensor:
    """The logarithm of softmax: ``x - max - log(sum(exp(x - max)))``."""
    place = axis % len(data.shape)
    top, _, total = _exponentials(data, place, "log_softmax")
    log = te.compute(total.shape, lambda *i: te.log(total[i]), "log_softmax_log")
    return te.compute(
        data.shape,
        lambda *i: data[i] - _at(top, i, place) - _at(log, i, place),
        "log_softmax",
    )


def _exponentials(x: te.Tensor, place: int, name: str) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """The maximum along the axis `place`, ``exp(x - max)``, and its sum."""
    top = _over(te.max, x, place, f"{name}_max")
    e = te.compute(x.shape, lambda *i: te.exp(x[i] - _at(top, i, place)), f"{name}_exp")
    return top, e, _over(te.sum, e, place, f"{name}_sum")


def _over(
    reduce: Callable[[TirExpr, te.ReduceAxis], Reduction], x: te.Tensor, place: int, name: str
) -> te.Tensor:
    """`x` reduced over the axis `place`."""
    k = te.reduce_axis(x.shape[place])
    shape = without(x.shape, (place,))
    return te.compute(shape, lambda *i: reduce(x[(*i[:place], k, *i[place:])], k), name)


def _at(reduced: te.Tensor, i: tuple[TirExpr, ...], place: int) -> TirExpr:
    """The element of `reduced`, a reduction over the axis `place`, at index `i` of its operand."""
    return reduced[without(i, (place,))]


LEGALIZE: Mapping[str, Legalize] = {
    "nn.softmax": softmax,
    "nn.log_softmax": log_softmax,
    "nn.layer_norm": moments.layer_norm,
    "nn.rms_norm": moments.rms_norm,
    "nn.group_norm": moments.group_norm,
    "nn.instance_norm": moments.instance_norm,
    "nn.batch_norm": moments.batch_norm,
}
