"""Whether the rows of a model are independent, so that calls may be joined.

That every input and output has one row for each of a batch does not say so: ``x - mean(x)`` over
the rows has that shape, too.  So the model is tried: the same rows give the same bits beside
others, and the same values at other places and in a batch of another size.
"""

import logging

import numpy as np

from relax_egraph.errors import RelaxEgraphError
from relax_egraph.inference.tensor import Tensor
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.server.model import Array, Arrays, Model, joined

LOG = logging.getLogger(__name__)

_OTHER_SIZES = (4, 1, 8, 16, 64, 128, 2, 3)
"""What is tried for all symbols but that of the rows, until the model takes one."""


def are_independent(model: Model) -> bool:
    """Whether a model with a `batch` gives each row what it would give it alone.

    A model that takes none of the inputs tried is not known to, and so is not.
    """
    for size in _OTHER_SIZES:
        try:
            independent = _agree(model, size)
        except (RelaxEgraphError, ValueError, TypeError) as error:
            LOG.debug("%s: no answer with other sizes of %d: %s", model.name, size, error)
            continue
        if not independent:
            LOG.warning("%s: a row depends on the others; requests are not joined", model.name)
        return independent
    LOG.warning("%s: refuses inputs that are made up; requests are not joined", model.name)
    return False


def _agree(model: Model, size: int) -> bool:
    numbers = np.random.default_rng(0)
    first, second, third = (_inputs(model, rows, size, numbers) for rows in (2, 3, 3))
    beside_second = model(joined([first, second]))
    beside_third = model(joined([first, third]))
    behind = model(joined([second, first]))
    alone = model(first)
    return all(
        np.array_equal(_bits(beside_second[name][:2]), _bits(beside_third[name][:2]))
        and _close(beside_second[name][:2], behind[name][3:])
        and _close(beside_second[name][:2], alone[name])
        for name in alone
    )


def _inputs(model: Model, rows: int, size: int, numbers: np.random.Generator) -> Arrays:
    return {tensor.name: _array(tensor, model, rows, size, numbers) for tensor in model.inputs}


def _array(
    tensor: Tensor, model: Model, rows: int, size: int, numbers: np.random.Generator
) -> Array:
    sizes = {model.batch: rows}
    shape = [e if isinstance(e, int) else sizes.get(e, size) for e in tensor.shape]
    if TABLE[tensor.dtype].kind == "float":
        return numbers.standard_normal(shape).astype(tensor.dtype)
    return numbers.integers(0, 2, shape).astype(tensor.dtype)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _close(actual: Array, expected: Array) -> bool:
    if TABLE[expected.dtype.name].kind != "float":
        return np.array_equal(actual, expected)
    wide = "float32" if expected.dtype.itemsize == 2 else expected.dtype
    tolerance = 2e-2 if expected.dtype.itemsize == 2 else 1e-3
    return np.allclose(
        actual.astype(wide), expected.astype(wide), tolerance, tolerance, equal_nan=True
    )
