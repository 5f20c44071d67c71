"""Instances of elementwise functions of one operand."""

import math
from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.dtypes import is_float
from tests.support.ops.case import ANY, FLOATS, INTEGERS, NUMBERS, Case, Draw, Sampler, elementwise


def astype(draw: Draw) -> Case:
    case = elementwise(1, ANY, 0, 100)(draw)
    return Case(case.operands, {"dtype": draw.choice(ANY)})


def clip(draw: Draw) -> Case:
    case = elementwise(1, NUMBERS, -9, 9)(draw)
    bounds = [-1e9, -5.0, -1.0, 0.0, 2.0, 300.0, math.inf, -math.inf]
    if is_float(case.operands[0].dtype.name):
        bounds += [-2.5, 0.1]
    return Case(case.operands, {"min": draw.choice(bounds), "max": draw.choice(bounds)})


def halves(draw: Draw) -> Case:
    """Numbers, many of them halfway between integers."""
    (x,) = elementwise(1, ANY, -9, 9)(draw).operands
    halved = is_float(x.dtype.name) and draw.chance()
    return Case((np.asarray(np.trunc(x) / 2, x.dtype) if halved else x,))


SAMPLERS: Mapping[str, Sampler] = {
    "abs": elementwise(1, ANY),
    "negative": elementwise(1, NUMBERS),
    **dict.fromkeys(["exp", "tanh", "erf", "sigmoid"], elementwise(1, FLOATS)),
    **dict.fromkeys(["log", "sqrt", "rsqrt"], elementwise(1, FLOATS, 0.1, 9)),
    "astype": astype,
    "clip": clip,
    **dict.fromkeys(["square", "sign"], elementwise(1, NUMBERS)),
    **dict.fromkeys(["ceil", "floor", "round", "trunc"], halves),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], elementwise(1, ANY)),
    "bitwise_not": elementwise(1, (*INTEGERS, "bool"), -99, 99),
    "logical_not": elementwise(1, ["bool"]),
    **dict.fromkeys(["sin", "cos", "atan"], elementwise(1, FLOATS, -99, 99)),
    **dict.fromkeys(["tan", "sinh", "cosh", "asinh"], elementwise(1, FLOATS)),
    **dict.fromkeys(["asin", "acos", "atanh"], elementwise(1, FLOATS, -0.99, 0.99)),
    "acosh": elementwise(1, FLOATS, 1, 99),
}
