"""Vectors whose elements follow from their index."""

import math
from typing import TypeAlias

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.create import extent, known_dtype
from relax_egraph.ir.struct_info import PrimStructInfo, StructInfo, tensor

Number: TypeAlias = Dim | float | None
"""The value of a number of the host, if it is known."""


@op()
def arange(
    start: PrimStructInfo,
    end: PrimStructInfo | None = None,
    step: PrimStructInfo | None = None,
    *,
    dtype: str | None = None,
) -> StructInfo:
    """``out[i] = start + i·step``, as long as that is before `end`; `start` alone is the end.

    By default the step is 1 and the dtype int64, or float32 if a float is among the numbers.
    Floats are computed in float64; fractions are truncated towards zero if `dtype` is an integer.
    """
    bounds = [p for p in (start, end, step) if p is not None]
    if dtype is None:
        dtype = "float32" if any(is_float(p.dtype) for p in bounds) else "int64"
    known_dtype("arange", dtype)
    first, last = (0, start) if end is None else (start, end)
    numbers = [_number(p) for p in (first, last, 1 if step is None else step)]
    if numbers[2] == 0:
        raise IllTyped("R.arange: step is 0, needs another number")
    try:
        count = arange_count(*numbers)
    except (OverflowError, ValueError):
        known = ", ".join(map(str, numbers))
        raise IllTyped(f"R.arange of {known}: needs finitely many numbers") from None
    return tensor(None if count is None else (count,), dtype, 1)


def arange_count(start: Number, end: Number, step: Number) -> Dim | None:
    """``max(⌈(end - start) / step⌉, 0)``, of numbers or of dimensions and a whole step.

    ``None`` where that is known only at run time.  Raises ``OverflowError`` or ``ValueError`` where
    a float is infinite or NaN, or the quotient is.
    """
    if start is None or end is None or not isinstance(step, int | float):
        return None
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        if not isinstance(start, int | float) or not isinstance(end, int | float):
            return None
        return max(math.ceil((end - start) / step), 0)
    length = dims.sub(end, start) if step > 0 else dims.sub(start, end)
    count = dims.floordiv(dims.add(length, abs(step) - 1), abs(step))
    return count if dims.prove_ge(count, 0) else dims.maximum(count, 0)


def _number(operand: PrimStructInfo | int) -> Number:
    if isinstance(operand, int):
        return operand
    return operand.value if operand.number is None else operand.number


@op()
def hamming_window(
    window_size: PrimStructInfo,
    periodic: PrimStructInfo | None = None,
    alpha: PrimStructInfo | None = None,
    beta: PrimStructInfo | None = None,
    *,
    dtype: str,
) -> StructInfo:
    """``out[i] = alpha - beta · cos(2πi / N)``; ``N`` is `window_size`, or 1 less if not periodic.

    By default it is periodic, with 0.54 and 0.46.  A window of one element is 1.
    """
    size = extent("hamming_window", "window_size", window_size)
    if not is_float(known_dtype("hamming_window", dtype)):
        raise IllTyped(f'R.hamming_window: dtype is "{dtype}", needs a floating-point one')
    return tensor(None if size is None else (size,), dtype, 1)
