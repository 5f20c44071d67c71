"""The float class that a difference between two computations of a value requires.

Each side is computed twice: in its own dtype, and in float64 as its reference.  In float64 the
sides must agree except for rounded constants.  In its own dtype, the second side must be about as
near to its reference as the first is to its own.  Errors are relative to the largest intermediate
number.  Where that is too strict, as for exponentials of large numbers, random rounding estimates
the rounding error (`compare`).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from relax_egraph.egraph.rulebook.rule import FloatClass
from relax_egraph.ir.dtypes import is_float, is_stored, limits, name_of
from relax_egraph.verify.values.inputs import UNBOUNDED, Array, Kind

Need: TypeAlias = Literal["exact", "reassociates", "fast", "unsound"]
"""The float class that a difference needs; ``unsound`` if no class allows it."""

ORDER: tuple[Need, ...] = ("exact", "reassociates", "fast", "unsound")

DIFFERS = ("rounding", "overflow", "inf", "NaN", "signed zero", "subnormal")
"""The ways in which sides may differ: last digits, or a kind of intermediate or final value."""

_ROUNDING = 1e-7
"""A result smaller than this share of the intermediate numbers consists of rounding errors."""

_REASSOCIATES = 1e-6
_FAST = 5e-6

_CLOSE = 2e-14
"""Rounding in float64, as a share of the largest intermediate number; more is a constant."""

_MOST = 1024
"""The most units in the last place that a formula loses without noise; more means lost digits."""

_NOISE = 4
"""The tolerance for noise, as a multiple of the errors under random rounding."""

_ROOM = 16
"""A number below this fraction of the largest one is far from it.  Rounding alone overflows no
program there, and a rule must not overflow there, either."""

_STORED = 4
"""The most units in the last place in a storage dtype: a fused kernel rounds once."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A value in its own dtype, and in float64.

    `scale` is the largest intermediate number, which determines the size of rounding errors.
    `range_used` is the largest intermediate number relative to the maximum of its dtype; above 1 it
    overflows.
    """

    value: Array
    wide: Array
    scale: float
    range_used: float = 0.0


def ordered(differs_on: Collection[str]) -> tuple[str, ...]:
    """`differs_on` in the order of `DIFFERS`."""
    return tuple(d for d in DIFFERS if d in differs_on)


def kept(stated: FloatClass) -> Need:
    """The class that a rule of float class `stated` must keep.

    The error of a ``bounded`` rule is that of storing constants.  Instances have constants without
    such an error, so only rounding remains.
    """
    match stated:
        case "unstated":
            return "exact"
        case "bounded":
            return "reassociates"
        case _:
            return stated


@dataclass(frozen=True, slots=True)
class Gap:
    """The float class that replacing one value by another needs, and the largest difference.

    `ulps` is the distance between the errors of both values, in units in the last place of the
    largest intermediate number; `on` are the ways, from `DIFFERS`, in which the values differ.
    """

    need: Need
    at: tuple[int, ...] | None = None
    ulps: float = 0.0
    on: frozenset[str] = frozenset()


def gap(left: Computed, right: Computed, kind: Kind, noise: Array | None = None) -> Gap:
    """The gap between `left` and `right`, for leaves of this `kind`.

    `noise` is the rounding error of each element; without it, the error is relative to the largest
    intermediate number.
    """
    a, b = left.value, right.value
    if a.shape != b.shape or a.dtype != b.dtype:
        return Gap("unsound")
    same = (a == b) | (_nan(a) & _nan(b))
    if same.all():
        return Gap("exact", on=_ZEROS if _signs_differ(a, b) else frozenset())
    if not is_float(name_of(a.dtype)):
        overflows = max(left.range_used, right.range_used) * _ROOM > 1
        return Gap("reassociates" if overflows else "unsound", _first(~same))
    if kind in UNBOUNDED:
        return Gap("reassociates", _first(~same), on=_causes(a, b, ~same, kind))
    return _of_floats(left, right, same, kind, noise)


def _of_floats(
    left: Computed, right: Computed, same: Array, kind: Kind, noise: Array | None
) -> Gap:
    a, b = left.value, right.value
    wide, other = left.wide, right.wide
    scale = max(left.scale, right.scale, 1e-300)
    stored = is_stored(name_of(a.dtype))
    finite = np.isfinite(wide) & np.isfinite(a)
    lost = finite & ~(np.isfinite(b) & np.isfinite(other))
    near_largest = left.range_used * _ROOM > 1
    if stored and near_largest:
        lost &= ~np.isfinite(other)  # whether a number overflows depends on the place of rounding
    kept = finite & np.isfinite(b) & np.isfinite(other)
    if kind != "large":
        strange = ~np.isfinite(wide) & np.isfinite(other)
        strange |= np.isinf(wide) & np.isinf(other) & (wide != other)
        if kind == "ordinary":  # infinities are quotients by 0, and no matter of rounding
            strange |= np.isinf(wide) & np.isnan(other)
        strange |= lost
        if strange.any():
            on = _causes(a, b, strange, kind)
            return Gap("fast" if kind == "nan" else "unsound", _first(strange), on=on)
    size = float(np.max(np.abs(wide), initial=0.0, where=finite))
    with np.errstate(all="ignore"):
        differ = kept & (np.abs(wide - other) > _ROUNDING * scale)
        apart = np.where(differ, np.abs(wide - other), 0) / max(size, _ROUNDING * scale)
        error = np.where(kept, np.abs(b - other), 0) / scale
        own = np.where(kept, np.abs(a - wide), 0) / scale
    place = np.unravel_index(int(np.argmax(np.maximum(apart, error))), a.shape)
    at = tuple(int(k) for k in place)
    epsilon = float(limits(name_of(a.dtype)).eps)
    on = _causes(a, b, ~same, kind)
    if float(apart.max()) > _FAST:
        return Gap("unsound", at, on=on)
    units = _units(left, right, kept, scale)
    ulps = float(np.max(units, initial=0.0))
    if lost.any():
        return Gap("fast", _first(lost), ulps, on)
    if right.range_used > 1 and not near_largest:
        return Gap("fast", at, ulps, on | {"overflow"})
    rounding = 0.0 if noise is None else _NOISE * noise / scale
    unlike = (error > 16 * own.max() + 64 * epsilon + rounding) | (
        units > _MOST + rounding / epsilon
    )
    if float(apart.max()) > _REASSOCIATES or unlike.any():
        return Gap("fast", at, ulps, on)
    if stored and ulps <= _STORED:
        return Gap("exact", at, ulps, on)
    return Gap("reassociates", at, ulps, on)


def _units(left: Computed, right: Computed, kept: Array, scale: float) -> Array:
    """The distance of the errors where both are `kept`, in units in the last place of `scale`.

    A value in float64 is its own reference.
    """
    a, b = left.value.astype(np.float64), right.value.astype(np.float64)
    binade = math.ldexp(0.5, math.frexp(scale)[1])  # the power of two at or below `scale`
    place = float(limits(name_of(left.value.dtype)).eps) * binade
    with np.errstate(all="ignore"):
        meant = right.wide - left.wide
        if left.value.dtype == np.float64:
            meant = np.where(np.abs(meant) < _CLOSE * scale, 0, meant)
        return np.where(kept, np.abs(b - a - meant), 0) / place


def _causes(a: Array, b: Array, apart: Array, kind: Kind) -> frozenset[str]:
    """The ways, from `DIFFERS`, in which the elements at `apart` differ."""
    x, y = a[apart], b[apart]
    finite = np.isfinite(x) & np.isfinite(y)
    causes: set[str] = set()
    if not finite.all():
        strange = "NaN" if np.isnan(x[~finite]).any() or np.isnan(y[~finite]).any() else "inf"
        causes.add({"nan": "NaN", "infinite": "inf", "ordinary": strange}.get(kind, "overflow"))
    if finite.any():
        tiny = float(limits(name_of(a.dtype)).tiny)
        least = np.minimum(np.abs(x[finite]), np.abs(y[finite])).astype(np.float64)
        causes.add("subnormal" if kind == "extreme" and (least < tiny).any() else "rounding")
    return frozenset(causes)


_ZEROS = frozenset(("signed zero",))


def _signs_differ(a: Array, b: Array) -> bool:
    return is_float(name_of(a.dtype)) and bool((np.signbit(a) != np.signbit(b))[a == 0].any())


def _nan(x: Array) -> Array:
    return np.isnan(x) if is_float(name_of(x.dtype)) else np.zeros(x.shape, bool)


def _first(places: Array) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argwhere(places)[0])
