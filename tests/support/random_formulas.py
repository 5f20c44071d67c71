"""Formulas that rules recognise, spelled out by random programs."""

import numpy as np

from relax_egraph.ir.expr import Constant, Expr, shape
from tests.support.random_writer import Writer, dtype_of, shape_of


def _scalar(x: Expr, value: float) -> Constant:
    return Constant(np.asarray(value, dtype_of(x)))


def softmax_written_out(w: Writer) -> Expr:
    x = w.tensor("f", least=1)
    axis = w.random.randrange(len(shape_of(x)))
    powers = w.op("exp", w.op("subtract", x, w.op("max", x, axis=axis, keepdims=True)))
    total = w.op("sum", powers, axis=axis, keepdims=True)
    if w.chance(0.5):
        return w.op("divide", powers, total)
    return w.op("multiply", powers, w.op("divide", _scalar(x, 1), total))


def sigmoid_written_out(w: Writer) -> Expr:
    x = w.tensor("f")
    below = w.op("add", _scalar(x, 1), w.op("exp", w.op("negative", x)))
    return w.op("divide", w.choice((x, _scalar(x, 1))), below)


def silu_written_out(w: Writer) -> Expr:
    x = w.tensor("f")
    return w.op("multiply", x, w.op("sigmoid", x))


def gelu_written_out(w: Writer) -> Expr:
    x = w.tensor("f")
    if w.chance(0.5):
        inner = w.op("erf", w.op("multiply", x, _scalar(x, 0.7071067811865476)))
    else:
        cube = w.op("multiply", _scalar(x, 0.044715), w.op("power", x, _scalar(x, 3)))
        inner = w.op("tanh", w.op("multiply", _scalar(x, 0.7978845608028654), w.op("add", x, cube)))
    half = w.op("multiply", x, _scalar(x, 0.5))
    return w.op("multiply", half, w.op("add", inner, _scalar(x, 1)))


def centred(w: Writer) -> Expr:
    x = w.tensor("f", least=1)
    axis = len(shape_of(x)) - 1
    away = w.op("subtract", x, w.op("mean", x, axis=axis, keepdims=True))
    variance = w.op("mean", w.op("multiply", away, away), axis=axis, keepdims=True)
    return w.op("multiply", away, w.op("rsqrt", w.op("add", variance, _scalar(x, 1e-5))))


def nothing(w: Writer) -> Expr:
    """A formula that rules simplify away."""
    x = w.tensor("f")
    twice = w.choice(("negative", "zero", "one", "cast", "reshape", "permute"))
    if twice == "negative":
        return w.op("negative", w.op("negative", x))
    if twice in ("zero", "one"):
        name = w.choice(("add", "subtract") if twice == "zero" else ("multiply", "divide"))
        return w.op(name, x, _scalar(x, float(twice == "one")))
    if twice == "cast":
        return w.op("astype", w.op("astype", x, dtype="float64"), dtype=dtype_of(x))
    if twice == "reshape":
        return w.op("reshape", w.op("flatten", x), shape(shape_of(x)))
    return w.op("permute_dims", w.op("permute_dims", x))
