"""The largest difference between two results of a program, relative to a tolerance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.ir.dtypes import is_float, limits

Array: TypeAlias = "np.ndarray[Any, Any]"

_OWN_ROUNDING = 8
"""Another order of a program's sums may be off by this multiple of the program's own rounding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The element at which two results differ the most, or two outputs that cannot be compared.

    Element `at` of output number `output` is `before` in one result and `after` in the other.
    Their distance is `apart`; the tolerance is `allowed`.
    """

    output: int
    at: tuple[int, ...]
    before: str
    after: str
    apart: float
    allowed: float

    @property
    def exceeds(self) -> bool:
        """Whether the distance is above the tolerance."""
        return not self.apart <= self.allowed

    def __str__(self) -> str:
        place = f"output {self.output}" + (f" at {list(self.at)}" if self.at else "")
        return (
            f"{place} is {self.after}, as written {self.before}: "
            f"off by {self.apart:.3g}, allowed are {self.allowed:.3g}"
        )


@dataclass(frozen=True, slots=True)
class Allowed:
    """The tolerance around an `expected` result: ``atol + rtol * |expected|``, as in numpy.

    By default `rtol` is half the digits of the dtype of an output, the square root of its epsilon,
    and 0 for integers.  `atol` is `rtol` times the largest finite magnitude in the output: where
    large terms cancel, rounding remains.  If both are defaults, 8 times the `rounding` of the
    program is added: the distance of each output from its value in float64.
    """

    expected: Sequence[Any]
    rtol: float | None = None
    atol: float | None = None
    rounding: Sequence[float] = ()

    def worst(self, result: Sequence[Any]) -> Difference:
        """The difference of `result` that is largest in relation to its tolerance."""
        if len(result) != len(self.expected):
            before, after = (f"{len(parts)} outputs" for parts in (self.expected, result))
            return Difference(0, (), before, after, np.inf, 0.0)
        pairs = enumerate(zip(self.expected, result, strict=True))
        none = Difference(0, (), "nothing", "nothing", 0.0, 0.0)
        return max((self._of(k, *pair) for k, pair in pairs), key=_severity, default=none)

    def _of(self, output: int, before: Any, after: Any) -> Difference:
        a, b = np.asarray(before), np.asarray(after)
        if a.dtype == object or (a.shape, a.dtype) != (b.shape, b.dtype):
            apart = 0.0 if a.dtype == object and before == after else np.inf
            return Difference(output, (), _described(before), _described(after), apart, 0.0)
        if not a.size:
            return Difference(output, (), "empty", "empty", 0.0, 0.0)
        apart, allowed = _distance(a, b), self._allowed(output, a)
        at = np.unravel_index(int(np.argmax(_ratio(apart, allowed))), a.shape)
        element = (str(a[at]), str(b[at]), float(apart[at]), float(allowed[at]))
        return Difference(output, tuple(map(int, at)), *element)

    def _allowed(self, output: int, expected: Array) -> Array:
        floats = is_float(expected.dtype.name)
        usual = float(limits(expected.dtype.name).eps) ** 0.5 if floats else 0.0
        rtol = usual if self.rtol is None else self.rtol
        size = np.abs(expected.astype(np.float64))
        finite = np.where(np.isfinite(size), size, 0.0)
        atol = rtol * float(finite.max()) if self.atol is None else self.atol
        if self.rtol is None and self.atol is None and self.rounding:
            atol += _OWN_ROUNDING * self.rounding[output]
        return atol + rtol * finite


def rounding(results: Sequence[Any], meanings: Sequence[Any]) -> list[float]:
    """The largest distance of each output from its value in float64, where both are finite."""
    distances: list[float] = []
    for result, meaning in zip(results, meanings, strict=True):
        a, b = np.asarray(result), np.asarray(meaning)
        if a.dtype == object or a.shape != b.shape or not is_float(a.dtype.name):
            distances.append(0.0)
            continue
        apart = _distance(a, b)
        distances.append(float(np.max(apart, initial=0.0, where=np.isfinite(apart))))
    return distances


def _distance(a: Array, b: Array) -> Array:
    """The distance of each pair of elements: 0 if they are equal, infinite if one is not finite."""
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in (a, b)]
        same = (a == b) | (np.isnan(wide[0]) & np.isnan(wide[1]))
        apart = np.abs(wide[0] - wide[1])
        if not is_float(a.dtype.name):
            apart = np.maximum(apart, 1.0)  # large integers may be one float
        return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _ratio(apart: Array, allowed: Array) -> Array:
    """``apart / allowed``; 0 where nothing is apart, infinite where only `allowed` is 0."""
    with np.errstate(all="ignore"):
        return np.where(apart == 0, 0.0, apart / allowed)


def _severity(d: Difference) -> float:
    return float(_ratio(np.asarray(d.apart), np.asarray(d.allowed)))


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return repr(value)
