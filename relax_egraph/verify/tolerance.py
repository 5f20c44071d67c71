"""What two ways to compute a value may differ in.

Each is computed twice: in its own dtype, and with float64 for float32 as the measure of what it
means.  In float64 the two must agree but for rounded constants; in float32 the second must be about
as near to its meaning as the first is to its own.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from relax_egraph.egraph.loader import FloatClass
from relax_egraph.ir.dtypes import is_float, limits
from relax_egraph.verify.inputs import Array, Kind

Need: TypeAlias = Literal["exact", "reassociates", "fast", "unsound"]
"""The float class that a difference needs; ``unsound`` if no class allows it."""

ORDER: tuple[Need, ...] = ("exact", "reassociates", "fast", "unsound")

_ROUNDING = 1e-7
"""What is this much smaller than the numbers on the way to it is made of their rounding errors."""

_REASSOCIATES = 1e-6
_FAST = 5e-6


@dataclass(frozen=True, slots=True)
class Computed:
    """A value in its own dtype, and in float64.

    `scale` is the largest number that occurs on the way to it: rounding errors are of its size.
    """

    value: Array
    wide: Array
    scale: float


def kept(stated: FloatClass) -> Need:
    """What a rule of float class `stated` keeps to.

    Of a ``bounded`` rule the error is that of constants as they are stored.  Those that it is tried
    on have none: the rest only rounds.
    """
    match stated:
        case "unstated":
            return "exact"
        case "bounded":
            return "reassociates"
        case _:
            return stated


def need(left: Computed, right: Computed, kind: Kind) -> tuple[Need, tuple[int, ...] | None]:
    """What replacing `left` by `right` needs, and where they differ the worst."""
    a, b = left.value, right.value
    if a.shape != b.shape or a.dtype != b.dtype:
        return "unsound", None
    same = (a == b) | (_nan(a) & _nan(b))
    if same.all():
        return "exact", None
    if not is_float(a.dtype.name):
        return "unsound", _first(~same)
    if kind == "special":
        return "reassociates", _first(~same)
    return _of_floats(left, right, kind)


def _of_floats(left: Computed, right: Computed, kind: Kind) -> tuple[Need, tuple[int, ...] | None]:
    a, b = left.value, right.value
    wide, other = left.wide, right.wide
    finite = np.isfinite(wide) & np.isfinite(a)
    if kind != "large":
        strange = ~np.isfinite(wide) & np.isfinite(other)
        strange |= np.isinf(wide) & np.isinf(other) & (wide != other)
        strange |= finite & ~(np.isfinite(b) & np.isfinite(other))
        if strange.any():
            return "fast" if kind == "nan" else "unsound", _first(strange)
    scale = max(left.scale, right.scale, 1e-300)
    lost = finite & ~(np.isfinite(b) & np.isfinite(other))
    size = float(np.max(np.abs(wide), initial=0.0, where=finite))
    with np.errstate(all="ignore"):
        differ = finite & ~lost & (np.abs(wide - other) > _ROUNDING * scale)
        apart = np.where(differ, np.abs(wide - other), 0) / max(size, _ROUNDING * scale)
        error = np.where(finite & ~lost, np.abs(b - other), 0) / scale
        own = np.where(finite & ~lost, np.abs(a - wide), 0) / scale
    place = np.unravel_index(int(np.argmax(np.maximum(apart, error))), a.shape)
    at = tuple(int(k) for k in place)
    epsilon = float(limits(a.dtype.name).eps)
    if float(apart.max()) > _FAST:
        return "unsound", at
    if lost.any():
        return "fast", _first(lost)
    if float(apart.max()) > _REASSOCIATES or float(error.max()) > 16 * own.max() + 64 * epsilon:
        return "fast", at
    return "reassociates", at


def _nan(x: Array) -> Array:
    return np.isnan(x) if is_float(x.dtype.name) else np.zeros(x.shape, bool)


def _first(places: Array) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argwhere(places)[0])
