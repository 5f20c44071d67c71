"""Calls of loop functions in random programs; each function has a meaning in numpy, too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_egraph.ir.expr import Constant, Expr
from relax_egraph.ir.module import BaseFunc
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.stmt import PrimFunc
from tests.support.random_choices import weight
from tests.support.random_writer import Array, Rejected, Writer, dtype_of, shape_of


@dataclass(frozen=True, slots=True)
class LoopFunction:
    """A function as loops and in numpy, of `operands` tensors of one shape and at least `rank`.

    A last operand is the constant `weight` for the first one.
    """

    loops: Callable[..., te.Tensor]
    numpy: Callable[..., Array]
    operands: int = 1
    rank: int = 0
    weight: Callable[[Writer, Expr], Constant] | None = None


def _mapped(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: te.tanh(x[i]) * 2.0, "mapped")


def _chosen(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: te.select(x[i] > 0.0, x[i], x[i] * 0.5), "chosen")


def _weighed(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: x[i] * y[i] + x[i], "weighed")


def _turned(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape[::-1], lambda *i: x[i[::-1]], "turned")


def _summed(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis(x.shape[-1])
    return te.compute(x.shape[:-1], lambda *i: te.sum(x[(*i, k)], k), "summed")


def _spread(x: te.Tensor) -> te.Tensor:
    def value(*i: TirVar) -> TirExpr:
        return x[i[1:]]

    return te.compute((2, *x.shape), value, "spread")


def _multiplied(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Of two matrices, the second one transposed."""
    k = te.reduce_axis(x.shape[-1])

    def value(*i: TirVar) -> Any:
        return te.sum(x[(*i[:-1], k)] * y[(*i[:-2], i[-1], k)], k)

    return te.compute((*x.shape[:-1], y.shape[-2]), value, "multiplied")


def _largest(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis(x.shape[-1])
    return te.compute(x.shape[:-1], lambda *i: te.max(x[(*i, k)], k), "largest")


def _neighbour(x: te.Tensor, at: Sequence[TirExpr], place: TirExpr) -> TirExpr:
    """The element at `place` of the last axis, or 0 outside of it."""
    last = from_dim(x.shape[-1])
    inside = binary("and", place >= 0, place < last)
    within = te.maximum(te.minimum(place, last - 1), 0)
    return te.select(inside, x[(*at, within)], 0.0)


def _shifted(x: te.Tensor) -> te.Tensor:
    def value(*i: TirVar) -> TirExpr:
        return _neighbour(x, i[:-1], i[-1] - 1)

    return te.compute(x.shape, value, "shifted")


def _convolved(x: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """Over the last axis, with the channels before it; padded to its extent."""
    c, k = te.reduce_axis(weight.shape[1]), te.reduce_axis(weight.shape[2])

    def value(*i: TirVar) -> Any:
        seen = _neighbour(x, (*i[:-2], c), i[-1] + k - weight.shape[2] // 2)
        return te.sum(seen * weight[i[-2], c, k], [c, k])

    return te.compute((*x.shape[:-2], weight.shape[0], x.shape[-1]), value, "convolved")


def _taps(w: Writer, x: Expr) -> Constant:
    """A weight for `_convolved`."""
    return weight(w, x, (w.choice((1, 2, 5)), shape_of(x)[-2], w.choice((1, 3))))


def _twice_tanh(x: Array) -> Array:
    return np.tanh(x) * x.dtype.type(2)


def _leaky(x: Array) -> Array:
    return np.where(x > 0, x, x * x.dtype.type(0.5)).astype(x.dtype)


def _times_and_plus(x: Array, y: Array) -> Array:
    return np.asarray(x * y + x)


def _sum(x: Array) -> Array:
    return np.asarray(x.sum(-1))


def _pair(x: Array) -> Array:
    return np.stack((x, x))


def _product(x: Array, y: Array) -> Array:
    return np.asarray(np.matmul(x, np.swapaxes(y, -1, -2)))


def _maximum(x: Array) -> Array:
    return np.asarray(x.max(-1, initial=-np.inf))


def _one_later(x: Array) -> Array:
    return np.concatenate((np.zeros_like(x[..., :1]), x[..., :-1]), -1)


def _filtered(x: Array, weight: Array) -> Array:
    taps, extent = weight.shape[2], x.shape[-1]
    padded = np.pad(x, [*[(0, 0)] * (x.ndim - 1), (taps // 2, taps // 2)])
    seen = [padded[..., k : k + extent] for k in range(taps)]
    return np.einsum("ock,k...ci->...oi", weight, np.stack(seen)).astype(x.dtype)


LOOPS: Mapping[str, LoopFunction] = {
    "mapped": LoopFunction(_mapped, _twice_tanh),
    "chosen": LoopFunction(_chosen, _leaky),
    "weighed": LoopFunction(_weighed, _times_and_plus, operands=2),
    "turned": LoopFunction(_turned, np.transpose, rank=1),
    "summed": LoopFunction(_summed, _sum, rank=1),
    "spread": LoopFunction(_spread, _pair),
    "multiplied": LoopFunction(_multiplied, _product, operands=2, rank=2),
    "largest": LoopFunction(_largest, _maximum, rank=1),
    "shifted": LoopFunction(_shifted, _one_later, rank=1),
    "convolved": LoopFunction(_convolved, _filtered, rank=2, weight=_taps),
}
"""The loop functions of random programs, by the name of the tensor that they compute."""


def by_numpy(function: BaseFunc, arrays: Sequence[Any]) -> None:
    """Write what a loop function of a random program computes, by its meaning in numpy.

    Numbers behind the arrays are the values of its symbols.
    """
    assert isinstance(function, PrimFunc)
    *operands, out = (a for a in arrays if isinstance(a, np.ndarray))
    with np.errstate(all="ignore"):
        np.copyto(out, LOOPS[function.outputs[0].name].numpy(*operands))


def call_of_loops(w: Writer) -> Expr:
    """Emit a call of a loop function."""
    name = w.choice(sorted(LOOPS))
    function = LOOPS[name]
    x = w.tensor("f", function.rank)
    if dtype_of(x) not in ("float32", "float64"):
        raise Rejected
    like = [v for v in w.known if (shape_of(v), dtype_of(v)) == (shape_of(x), dtype_of(x))]
    operands = (x, *(w.choice(like) for _ in range(function.operands - 1)))
    if function.weight is not None:
        operands = (*operands, function.weight(w, x))
    with np.errstate(all="ignore"):
        sample = np.asarray(function.numpy(*map(w.sample, operands)))
    return w.emit_sampled(
        w.builder.call_te(function.loops, *operands, name=f"loops_{name}"), sample
    )
