"""Random values of the leaves, of several kinds."""

from typing import Any, Literal, TypeAlias

import numpy as np

from relax_egraph.ir.dtypes import is_float, limits

Array: TypeAlias = np.ndarray[Any, Any]

Kind: TypeAlias = Literal["ordinary", "large", "nan", "special"]
"""What is among the values: numbers near 0; large and tiny ones; NaN; infinities and extremes."""

KINDS: tuple[Kind, ...] = ("ordinary", "ordinary", "large", "nan", "special")


def random_array(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, kind: Kind, constant: bool
) -> Array:
    """An array of values of `kind`; a `constant` of the program is finite."""
    if constant and kind in ("nan", "special"):
        kind = "ordinary"
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
        case "large":
            odd = rng.choice([1e4, -1e4, 1e3, -300.0, 1e-4, -1e-3, 1e-8, 0.0, -0.0], shape)
        case "nan":
            odd = np.full(shape, np.nan)
        case "special":
            tiny, top = limits(dtype).tiny, limits(dtype).max
            extremes = (np.inf, -np.inf, np.nan, float(top), float(-top), float(tiny), -0.0)
            odd = rng.choice(extremes, shape)
        case "ordinary":
            odd = np.zeros(shape)
            some = some & np.asarray(rng.random(shape) < 0.2)
    return np.where(some, np.asarray(odd).astype(dtype), values)


def _integers(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], kind: Kind
) -> Array:
    info = np.iinfo(dtype)
    low = 0 if info.min == 0 or rng.random() < 0.3 else -3
    values = np.asarray(rng.integers(low, 4, shape)).astype(dtype)
    if kind in ("large", "special"):
        extremes = np.array([info.min, info.max, info.max // 2], dtype)
        odd = np.asarray(rng.choice(extremes, shape))
        return np.where(rng.random(shape) < 0.3, odd, values)
    return values
