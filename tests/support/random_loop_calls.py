"""Calls of loop functions in random programs; each function has a meaning in numpy, too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_egraph.ir.expr import Expr
from relax_egraph.ir.module import BaseFunc
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, TirVar
from relax_egraph.tir.stmt import PrimFunc
from tests.support.random_writer import Array, Rejected, Writer, dtype_of, shape_of


@dataclass(frozen=True, slots=True)
class LoopFunction:
    """A function as loops and in numpy, of `operands` tensors of one shape and at least `rank`."""

    loops: Callable[..., te.Tensor]
    numpy: Callable[..., Array]
    operands: int = 1
    rank: int = 0


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


LOOPS: Mapping[str, LoopFunction] = {
    "mapped": LoopFunction(_mapped, _twice_tanh),
    "chosen": LoopFunction(_chosen, _leaky),
    "weighed": LoopFunction(_weighed, _times_and_plus, operands=2),
    "turned": LoopFunction(_turned, np.transpose, rank=1),
    "summed": LoopFunction(_summed, _sum, rank=1),
    "spread": LoopFunction(_spread, _pair),
    "multiplied": LoopFunction(_multiplied, _product, operands=2, rank=2),
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
    with np.errstate(all="ignore"):
        sample = np.asarray(function.numpy(*map(w.sample, operands)))
    return w.emit_sampled(
        w.builder.call_te(function.loops, *operands, name=f"loops_{name}"), sample
    )
