"""Comparison of values that a trace proves equal."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from relax_egraph.ir.dtypes import is_float, limits, name_of
from relax_egraph.verify.values.applied import Result
from relax_egraph.verify.values.inputs import Kind
from relax_egraph.verify.values.tolerance import ORDER, Computed, Need, gap

_LARGE, _HUGE, _TINY = 1e3, 1e9, 1e-25
"""Thresholds: numbers are large above the first; products overflow above the second, and underflow
below the third.
"""

_KINDS: tuple[Kind, ...] = ("ordinary", "large", "nan", "infinite", "extreme")

_WHOLE = 1e-4
"""The tolerance of a whole program, relative to its largest number: errors of steps add up."""


@dataclass(frozen=True, slots=True)
class Around:
    """The kind of the numbers in a step, and the largest finite one.

    The float class of a rule is checked on ordinary numbers; rounding errors are relative to the
    largest number.
    """

    kind: Kind = "ordinary"
    scale: float = 0.0

    @staticmethod
    def of(result: Result) -> "Around":
        """The kind and the largest number of one value."""
        return together(map(_around, parts_of(result)))


def together(parts: Iterable[Around]) -> Around:
    """The most extreme kind among `parts`, and the largest number."""
    whole = Around()
    for part in parts:
        kinds: tuple[Kind, ...] = (whole.kind, part.kind)
        whole = Around(max(kinds, key=_KINDS.index), max(whole.scale, part.scale))
    return whole


def _around(value: Computed) -> Around:
    if not is_float(name_of(value.value.dtype)) or not value.value.size:
        return Around()
    own, wide = np.abs(value.value.astype(np.float64)), np.abs(value.wide)
    finite = np.isfinite(own) & np.isfinite(wide)
    scale = float(np.max(wide, initial=0.0, where=finite))
    least = float(np.min(wide, initial=1.0, where=finite & (wide > 0)))
    if scale > _HUGE or least < _TINY:
        return Around("extreme", scale)
    if np.isinf(own).any() or np.isinf(wide).any():
        return Around("infinite", scale)
    if not finite.all():
        return Around("nan", scale)
    return Around("large" if scale > _LARGE else "ordinary", scale)


def parts_of(result: Result) -> tuple[Computed, ...]:
    """The tensors of a result."""
    return result if isinstance(result, tuple) else (result,)


@dataclass(frozen=True, slots=True)
class Compared:
    """The float class that a replacement needs, and the place of the largest difference.

    `error` is the largest difference relative to the scale; `part` is the index of the tensor, in a
    tuple, that differs the most.
    """

    need: Need
    at: tuple[int, ...] | None = None
    error: float = 0.0
    part: int = 0


def compared(before: Result, after: Result, around: Around) -> Compared:
    """The difference of `after` from `before`, in a step with the numbers `around`."""
    lefts, rights = parts_of(before), parts_of(after)
    if len(lefts) != len(rights) or isinstance(before, tuple) != isinstance(after, tuple):
        return Compared("unsound")
    worst = Compared("exact")
    for part, pair in enumerate(zip(lefts, rights, strict=True)):
        a, b = (replace(v, scale=around.scale) for v in pair)
        difference = gap(a, b, around.kind)
        worst = max(
            worst,
            Compared(difference.need, difference.at, _error(a, b), part),
            key=lambda c: (ORDER.index(c.need), c.error),
        )
    return worst


def _error(a: Computed, b: Computed) -> float:
    """The largest difference of numbers, relative to the scale."""
    if a.value.shape != b.value.shape or not is_float(name_of(a.value.dtype)):
        return 0.0
    apart = np.abs(a.value.astype(np.float64) - b.value.astype(np.float64))
    largest = float(np.max(apart, initial=0.0, where=np.isfinite(apart)))
    return largest / a.scale if a.scale else 0.0


def agree(a: Result, b: Result, tolerance: float = 0.0) -> bool:
    """Whether two results of a whole program agree, in float64.

    A positive `tolerance`, relative to the norm of `a`, is for weights stored in fewer bits: then
    the value of `b` in its own dtype counts.
    """
    lefts, rights = parts_of(a), parts_of(b)
    return len(lefts) == len(rights) and all(
        _agree(x, y, tolerance) for x, y in zip(lefts, rights, strict=True)
    )


def _agree(a: Computed, b: Computed, tolerance: float) -> bool:
    if a.value.shape != b.value.shape or a.value.dtype != b.value.dtype:
        return False
    if not is_float(name_of(a.value.dtype)):
        return bool((a.value == b.value).all())
    finite = np.isfinite(a.wide) & np.isfinite(b.wide)
    size = np.abs(a.wide)
    scale = float(np.max(size, initial=0.0, where=finite))
    apart = np.where(finite, np.abs(a.wide - b.wide), 0.0)
    if tolerance:
        apart = np.where(finite, np.abs(a.wide - b.value.astype(np.float64)), 0.0)
        lost = float(np.sqrt(np.sum(np.square(apart))))
        whole = float(np.sqrt(np.sum(np.square(np.where(finite, size, 0.0)))))
        return lost <= tolerance * whole
    return float(np.max(apart, initial=0.0)) <= _WHOLE * scale


def within(x: Computed, w: Computed, a: Computed, b: Computed, tolerance: float) -> bool:
    """Whether `b` is within `tolerance` of the product `a` = ``x @ w``.

    The tolerance is relative to the norm of a row of `x` times the norm of a column of `w`.
    """
    allowed = tolerance + 64 * float(limits(name_of(b.value.dtype)).eps)
    rows = np.sqrt(np.sum(np.square(x.wide), -1, keepdims=x.wide.ndim > 1))
    columns = np.sqrt(np.sum(np.square(w.wide), -2, keepdims=x.wide.ndim > 1))
    stored = b.value.astype(np.float64)
    finite = np.isfinite(a.wide) & np.isfinite(stored)
    return not (finite & (np.abs(a.wide - stored) > allowed * rows * columns)).any()
