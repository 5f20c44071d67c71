"""Random arrays for leaves, of several kinds of values."""

from typing import Any, Literal, TypeAlias

import numpy as np

from relax_egraph.ir.dtypes import is_float, limits

Array: TypeAlias = np.ndarray[Any, Any]

Kind: TypeAlias = Literal["ordinary", "large", "nan", "all nan", "infinite", "extreme"]
"""The numbers among the values: near 0; large and tiny; NaN; NaN only; infinities; or the largest
and the smallest numbers of the dtype."""

KINDS: tuple[Kind, ...] = ("ordinary", "ordinary", "large", "nan", "infinite", "extreme")

OF_HALVES: tuple[Kind, ...] = ("ordinary", "large", "large", "large", "large", "large")
"""Kinds of values for float16, which overflows at moderate numbers."""

UNBOUNDED: tuple[Kind, ...] = ("infinite", "extreme")
"""Kinds on which overflow may depend on the order of rounding."""


_HALVES = (2.0**-12, 0.25, 12.0, 80.0, 500.0, 1e3, 2e3, 3e3, 4e3, 6e4)
"""Magnitudes of float16 arrays: the whole range, most often numbers far from the largest one
whose squares overflow."""


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, kind: Kind) -> Array:
    """An array of values of `kind`."""
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if not is_float(dtype):
        return _integers(rng, shape, np.dtype(dtype), kind)
    match int(rng.integers(4)):
        case 0:
            base = rng.integers(-3, 4, shape).astype(np.float64)
        case 1:
            base = rng.uniform(0.1, 3, shape)
        case _:
            base = rng.uniform(-3, 3, shape)
    values = np.asarray(base).astype(dtype)
    some = np.asarray(rng.random(shape) < 0.3)
    match kind:
        case "large" if dtype == "float16":
            size = float(rng.choice(_HALVES))
            odd = size * rng.choice([1.0, -1.0, 0.7, -0.6, 1e-2, 0.0, -0.0], shape)
            if rng.random() < 0.5:
                odd = np.abs(odd)  # they do not cancel in a sum
            if rng.random() < 0.5:
                some = some & (rng.random(shape) < 8 / max(values.size, 8))  # their mean is small
        case "large":
            odd = rng.choice([1e4, -1e4, 1e3, -300.0, 1e-4, -1e-3, 1e-8, 0.0, -0.0], shape)
        case "nan":
            odd = np.full(shape, np.nan)
        case "all nan":
            odd, some = np.full(shape, np.nan), np.ones(shape, bool)
        case "infinite":
            odd = rng.choice((np.inf, -np.inf, 0.0, -0.0), shape)
        case "extreme":
            odd = rng.choice(_extremes(dtype), shape)
        case "ordinary":
            odd = np.zeros(shape)
            some = some & np.asarray(rng.random(shape) < 0.2)
    return np.where(some, np.asarray(odd).astype(dtype), values)


def _extremes(dtype: str) -> tuple[float, ...]:
    """The ends of the range of a floating-point dtype, and their square roots."""
    info = limits(dtype)
    top, tiny, least = float(info.max), float(info.tiny), float(info.smallest_subnormal)
    return (top, -top, tiny, least, -least, top**0.5, tiny**0.5, -0.0)


def _integers(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], kind: Kind
) -> Array:
    info = np.iinfo(dtype)
    low = 0 if info.min == 0 or rng.random() < 0.3 else -3
    values = np.asarray(rng.integers(low, 4, shape)).astype(dtype)
    if kind in ("large", "extreme"):
        most = rng.integers(info.min, info.max, 3, dtype, endpoint=True)
        extremes = np.array([info.min, info.max, info.max // 2, *most], dtype)
        odd = np.asarray(rng.choice(extremes, shape))
        return np.where(rng.random(shape) < 0.3, odd, values)
    return values
