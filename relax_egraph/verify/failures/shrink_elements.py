"""Shrinks the elements of an instance's operands while the sides of the rule still differ."""

from itertools import product

import numpy as np

from relax_egraph.ir.dtypes import is_float
from relax_egraph.verify.failures.judge import Judge
from relax_egraph.verify.values.inputs import Array

_ELEMENTS = 48
"""The most elements of an operand that are simplified one by one."""

_PLAIN_ELEMENTS = (0.0, 1.0, 2.0, -1.0, 3.0, -2.0)
_LARGE = (256, 2**16, -(2**16), 2**32)
"""Elements that overflow integers of some width."""

_FIRST = (0, 1, 2, 2**16)
_LEAVES = 4
"""The most operands for which all combinations of these numbers are tried."""


def simplify_elements(judge: Judge) -> None:
    """Simplify the elements of ``judge.sides``."""
    leaves = sorted(judge.sides.instance.arrays)
    if len(leaves) <= _LEAVES:
        arrays = judge.sides.instance.arrays
        fillings = product(*([k for k in _FIRST if _fits(k, arrays[leaf])] for leaf in leaves))
        for numbers in sorted(fillings, key=lambda filling: (sum(filling), filling)):
            by_leaf = zip(leaves, numbers, strict=True)
            if judge.exactly({leaf: _full(arrays[leaf], k) for leaf, k in by_leaf}):
                break
    for _ in range(2):
        before = judge.sides
        for leaf in leaves:
            _simpler_whole(judge, leaf)
        for leaf in leaves:
            _simpler_parts(judge, leaf)
        if judge.sides is before:
            return


def _full(like: Array, number: int) -> Array:
    return np.full(like.shape, number).astype(like.dtype)


def _simpler_whole(judge: Judge, leaf: str) -> None:
    """Try equal elements, consecutive numbers, and rounded elements."""
    now = judge.sides.instance.arrays[leaf]
    if not now.size:
        return
    numbers = np.arange(now.size).reshape(now.shape)
    with np.errstate(all="ignore"):
        rounded = np.round(np.clip(np.nan_to_num(now), -9, 9)) if _floats(now) else now
    for other in (*(np.full(now.shape, k) for k in (0, 1, 2)), numbers, numbers + 1, rounded):
        array = np.asarray(other).astype(now.dtype)
        if _weight(array) < _weight(now) and _accepted(judge, leaf, array):
            return


def _simpler_parts(judge: Judge, leaf: str) -> None:
    """Try simple numbers for each element alone."""
    for at in list(np.ndindex(judge.sides.instance.arrays[leaf].shape))[:_ELEMENTS]:
        for plain in (*_PLAIN_ELEMENTS, *_LARGE):
            now = judge.sides.instance.arrays[leaf]
            if not _fits(plain, now):
                continue
            array = now.copy()
            array[at] = np.asarray(plain).astype(now.dtype)
            if _weight(array) < _weight(now) and _accepted(judge, leaf, array):
                break


def _accepted(judge: Judge, leaf: str, array: Array) -> bool:
    return judge.exactly({**judge.sides.instance.arrays, leaf: array})


def _fits(number: float, array: Array) -> bool:
    if _floats(array):
        return number in _PLAIN_ELEMENTS
    info = np.iinfo(array.dtype) if array.dtype != bool else None
    return info.min <= number <= info.max if info else number in (0, 1)


def _floats(array: Array) -> bool:
    return is_float(array.dtype.name)


def _weight(array: Array) -> float:
    """The amount of text in `array`: few, small, integral elements weigh least."""
    total = 0.0
    for value in array.ravel().tolist():
        number = float(value)
        if number in _PLAIN_ELEMENTS:
            total += _PLAIN_ELEMENTS.index(number)
        elif number.is_integer():
            total += 6 + min(int(abs(number)).bit_length(), 60) / 60
        else:
            total += 8
    return total + len(set(map(str, array.ravel().tolist())))
