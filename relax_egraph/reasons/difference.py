"""Where two results of a program are furthest apart, and how far apart they may be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.ir.dtypes import is_float, limits

Array: TypeAlias = "np.ndarray[Any, Any]"

_OWN_ROUNDING = 8
"""So many times what a program is off by itself, another order of its sums may be off."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two results differ the most, or what it is that cannot be compared.

    Of output number `output`, at element `at`, one is `before` and the other `after`; they are
    `apart`, and `allowed` to be so far.
    """

    output: int
    at: tuple[int, ...]
    before: str
    after: str
    apart: float
    allowed: float

    @property
    def exceeds(self) -> bool:
        """Whether they are further apart than they are allowed to be."""
        return not self.apart <= self.allowed

    def __str__(self) -> str:
        place = f"output {self.output}" + (f" at {list(self.at)}" if self.at else "")
        return (
            f"{place} is {self.after}, as written {self.before}: "
            f"off by {self.apart:.3g}, allowed are {self.allowed:.3g}"
        )


@dataclass(frozen=True, slots=True)
class Allowed:
    """How far a result may be from the `expected` one: ``atol + rtol * |expected|``, as in numpy.

    By default `rtol` is half the digits of the dtype of an output, the square root of its epsilon,
    and none of integers.  `atol` is that part of the largest finite magnitude in the output: where
    large terms cancel, what is left is rounding.  If neither is given, what `rounding` the program
    has by itself counts 8 times: for each output how far it is from its meaning in float64.
    """

    expected: Sequence[Any]
    rtol: float | None = None
    atol: float | None = None
    rounding: Sequence[float] = ()

    def worst(self, found: Sequence[Any]) -> Difference:
        """Where `found` is off by the largest part of what is allowed."""
        if len(found) != len(self.expected):
            before, after = (f"{len(parts)} outputs" for parts in (self.expected, found))
            return Difference(0, (), before, after, np.inf, 0.0)
        pairs = enumerate(zip(self.expected, found, strict=True))
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
        at = np.unravel_index(int(np.argmax(_of_allowed(apart, allowed))), a.shape)
        said = (str(a[at]), str(b[at]), float(apart[at]), float(allowed[at]))
        return Difference(output, tuple(map(int, at)), *said)

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
    """How far each output is from its meaning in float64 at most, where both are finite."""
    found: list[float] = []
    for result, meaning in zip(results, meanings, strict=True):
        a, b = np.asarray(result), np.asarray(meaning)
        if a.dtype == object or a.shape != b.shape or not is_float(a.dtype.name):
            found.append(0.0)
            continue
        apart = _distance(a, b)
        found.append(float(np.max(apart, initial=0.0, where=np.isfinite(apart))))
    return found


def _distance(a: Array, b: Array) -> Array:
    """How far apart the elements are: 0 of the same, infinite where one is not finite."""
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in (a, b)]
        same = (a == b) | (np.isnan(wide[0]) & np.isnan(wide[1]))
        apart = np.abs(wide[0] - wide[1])
        if not is_float(a.dtype.name):
            apart = np.maximum(apart, 1.0)  # large integers may be one float
        return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _of_allowed(apart: Array, allowed: Array) -> Array:
    """What part of the `allowed` distance things are `apart`; infinite if none is allowed."""
    with np.errstate(all="ignore"):
        return np.where(apart == 0, 0.0, apart / allowed)


def _severity(d: Difference) -> float:
    return float(_of_allowed(np.asarray(d.apart), np.asarray(d.allowed)))


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return repr(value)
