"""Random instances of every operator, one module for each family."""

from collections.abc import Mapping

from tests.support.ops import (
    activation,
    attention,
    binary,
    conv,
    create,
    dynamic,
    image,
    index,
    join,
    linear_algebra,
    loss,
    manipulate,
    norm,
    points,
    pool,
    quantize,
    reduce,
    rotary,
    sampling,
    scan,
    scatter,
    search,
    sort,
    unary,
)
from tests.support.ops.case import Sampler

SAMPLERS: Mapping[str, Sampler] = {
    **unary.SAMPLERS,
    **binary.SAMPLERS,
    **activation.SAMPLERS,
    **reduce.SAMPLERS,
    **scan.SAMPLERS,
    **search.SAMPLERS,
    **sort.SAMPLERS,
    **sampling.SAMPLERS,
    **norm.SAMPLERS,
    **linear_algebra.SAMPLERS,
    **manipulate.SAMPLERS,
    **join.SAMPLERS,
    **create.SAMPLERS,
    **index.SAMPLERS,
    **scatter.SAMPLERS,
    **conv.SAMPLERS,
    **pool.SAMPLERS,
    **image.SAMPLERS,
    **points.SAMPLERS,
    **attention.SAMPLERS,
    **rotary.SAMPLERS,
    **loss.SAMPLERS,
    **quantize.SAMPLERS,
    **dynamic.SAMPLERS,
}
"""The sampler of each operator: it draws instances that the operator accepts."""
