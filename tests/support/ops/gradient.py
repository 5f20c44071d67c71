"""Instances of gradients: the operands of an operator, and a gradient like its result."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.op import OPS
from tests.support.ops.case import FLOATS, INTEGERS, Case, Draw, Sampler
from tests.support.ops.loss import nll_loss
from tests.support.ops.pool import pool


def backward(name: str, forward: Sampler, draw: Draw) -> Case:
    """The gradient of operator `name` at an instance that `forward` draws."""
    case = forward(draw)
    result = apply_op(OPS[name], case.operands, case.attrs)
    assert isinstance(result, np.ndarray)
    gradient = draw.array(result.shape, result.dtype.name)
    return Case((gradient, *case.operands), case.attrs, case.error)


def take(draw: Draw) -> Case:
    shape = draw.shape(1, 3, 1)
    axis = draw.axis(len(shape))
    indices = draw.array(draw.shape(0, 2), draw.choice(INTEGERS), 0, shape[axis] - 1)
    return Case((draw.array(shape, draw.choice(FLOATS)), indices), {"axis": axis}, 2e-5)


SAMPLERS: Mapping[str, Sampler] = {
    "grad.nll_loss_backward": partial(backward, "nn.nll_loss", nll_loss),
    "grad.max_pool2d_backward": partial(backward, "nn.max_pool2d", partial(pool, 2, FLOATS)),
    "grad.avg_pool2d_backward": partial(backward, "nn.avg_pool2d", partial(pool, 2, FLOATS)),
    "grad.take_backward": partial(backward, "take", take),
}
