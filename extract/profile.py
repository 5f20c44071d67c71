"""Machine profiles for the cost model: launch overhead, peak arithmetic, memory bandwidth."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from relax_egraph.base.files import replacing
from relax_egraph.base.parameters import (
    NAME,
    POSITIVE,
    check_fields,
    collection,
    instance,
    integer,
    mapping,
    number,
)
from relax_egraph.errors import ExtractionError
from relax_egraph.ir.dtypes import computed

_COUNTED = ("float32", "float64", "bool", "int8", "uint8", "int16", "int32", "int64")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the memory hierarchy: `size` bytes, `bandwidth` bytes per second."""

    size: float
    bandwidth: float

    def __post_init__(self) -> None:
        number("a number of bytes", lambda size: size > 0).check("size", self.size)
        POSITIVE.check("bandwidth", self.bandwidth)


_PROFILE = {
    "name": NAME,
    "launch": POSITIVE,
    "peak": mapping("positive numbers by dtype, such as {'float32': 1e11, …}", POSITIVE),
    "levels": collection("a sequence of Levels of memory", instance("a Level", Level)),
    "cores": integer("a number of cores, 1 or more", 1),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine: seconds to launch a kernel, `cores` that a kernel runs on, flops per second.

    `peak` is of one core, by the dtype of the arithmetic.  `levels` of memory are in ascending
    order of size, the last infinite: of the bytes that a kernel moves, as many as fit move at the
    bandwidth of the first level, the next at that of the second level, and so on.

    Raises ``ValueError`` for impossible values.
    """

    name: str
    launch: float
    peak: Mapping[str, float]
    levels: tuple[Level, ...]
    cores: int = 1

    def __post_init__(self) -> None:
        check_fields(self, _PROFILE)
        sizes = [0.0, *(level.size for level in self.levels)]
        for dtype in self.peak:
            if dtype not in _COUNTED:
                raise ValueError(f"peak: {dtype!r} is none of {', '.join(_COUNTED)}")
        if missing := [dtype for dtype in _COUNTED if dtype not in self.peak]:
            raise ValueError(f"no peak for {', '.join(missing)}")
        if sizes != sorted(set(sizes)) or sizes[-1] != math.inf:
            raise ValueError("the sizes of levels grow, and the last is without an end")

    def peak_of(self, dtype: str | None) -> float:
        """Flops per second at `dtype`; at the slowest dtype, if it is unknown."""
        core = min(self.peak.values()) if dtype is None else self.peak[_counted_as(dtype)]
        return core * self.cores

    def moving(self, nbytes: float) -> float:
        """Seconds to move `nbytes` at full bandwidth."""
        seconds, moved = 0.0, 0.0
        for level in self.levels:
            part = min(nbytes, level.size) - moved
            seconds += part / level.bandwidth
            moved += part
            if moved >= nbytes:
                break
        return seconds

    def seconds(self, operations: float, nbytes: float, dtype: str) -> float:
        """The roofline: the least seconds for operations on elements of `dtype`, and for bytes."""
        computing = operations / self.peak_of(dtype) if operations else 0.0
        return max(self.moving(nbytes), computing)

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON; the size of the last level is ``None``."""
        levels = [[_finite(x.size), x.bandwidth] for x in self.levels]
        return {**asdict(self), "levels": levels}

    @staticmethod
    def read(file: Path) -> "Profile":
        """The profile that `write` wrote; raises `ExtractionError` for any other file."""
        try:
            return _profile(json.loads(file.read_text("utf-8")))
        except (ValueError, KeyError, TypeError) as problem:
            raise ExtractionError(f"{file} is not the profile of a machine: {problem}") from None

    def write(self, file: Path) -> None:
        """Save as JSON, atomically."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as output:
            output.write(json.dumps(self.as_dict(), indent=1).encode() + b"\n")


def _finite(size: float) -> float | None:
    return None if size == math.inf else size


def _profile(document: Any) -> Profile:
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    fields = cast(dict[str, Any], document)
    levels = tuple(
        Level(math.inf if size is None else float(size), float(bandwidth))
        for size, bandwidth in fields["levels"]
    )
    peak = {str(dtype): float(flops) for dtype, flops in fields["peak"].items()}
    return Profile(str(fields["name"]), float(fields["launch"]), peak, levels, int(fields["cores"]))


def _counted_as(dtype: str) -> str:
    """The dtype whose peak counts for `dtype`: unsigned integers are as fast as signed ones."""
    name = computed(dtype)
    return name if name in _COUNTED else name.removeprefix("u")


REFERENCE_PROFILE = Profile(
    name="reference",
    launch=1.6e-6,
    peak={
        "float32": 240e9,
        "float64": 120e9,
        "bool": 240e9,
        "int8": 240e9,
        "uint8": 240e9,
        "int16": 240e9,
        "int32": 120e9,
        "int64": 60e9,
    },
    levels=(Level(8 * 2**20, 100e9), Level(math.inf, 40e9)),
)
"""One core of a current server, fixed so that a module is optimized the same on any machine.

A launch is a call from the virtual machine's interpreter: 1.6 µs, measured in a chain of kernels.
"""
