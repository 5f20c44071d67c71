"""Whether the rows of a function are independent, so that batches may be joined and split.

That every input and result has one row for each of a batch does not say so: ``x - mean(x)`` over
the rows has that shape, too.  So the function is tried: the same rows give the same bits beside
others, and the same values at other places and in a batch of another size.
"""

from collections.abc import Iterator

import numpy as np

from relax_egraph.errors import RelaxEgraphError, RunError
from relax_egraph.inference.rows import Array, Function, joined, rows_per_call
from relax_egraph.inference.tensor import Tensor
from relax_egraph.ir.dtypes import TABLE

_OTHER_SIZES = (4, 1, 8, 16, 64, 128, 2, 3)
"""What is tried for all symbols but that of the rows, until the function takes one."""


def dependent_result(function: Function) -> str | None:
    """The first result that gives a row another value because of the other rows; or ``None``.

    The function is called four times, with five rows at most or with its fixed number.  Raises
    `RunError` if it takes none of the inputs that are tried, and what `rows_per_call` raises.
    """
    each = rows_per_call(function)
    if each == 1:
        return None
    refusal: Exception | None = None
    for size in _OTHER_SIZES:
        try:
            return next(_dependent(function, each, size), None)
        except (RelaxEgraphError, ValueError, TypeError) as error:
            refusal = error
    raise RunError(f"inputs that are made up are refused: {refusal}")


def _dependent(function: Function, each: int | None, size: int) -> Iterator[str]:
    numbers = np.random.default_rng(0)
    few, others = (2, 3) if each is None else (each // 2, each - each // 2)
    first, second, third = (
        {t.name: _array(t, rows, size, numbers) for t in function.inputs}
        for rows in (few, others, others)
    )
    beside_second = function(joined([first, second]))
    beside_third = function(joined([first, third]))
    behind = function(joined([second, first]))
    alone = function(first) if each is None else {}
    for tensor in function.outputs:
        name = tensor.name
        expected = beside_second[name][:few]
        if not (
            np.array_equal(_bits(expected), _bits(beside_third[name][:few]))
            and _close(expected, behind[name][others:])
            and _close(expected, alone.get(name, expected))
        ):
            yield name


def _array(tensor: Tensor, rows: int, size: int, numbers: np.random.Generator) -> Array:
    others = [e if isinstance(e, int) else size for e in tensor.shape[1:]]
    shape = (rows, *others)
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
