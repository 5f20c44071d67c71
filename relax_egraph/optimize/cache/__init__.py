"""The plan cache: a region that was planned once, in any process, is read from disk.

Plans lie in the folder of object files and follow its limits.  The key of a plan is everything that
it depends on: the region, without the values of its leaves; the rules, the machine, the limits; the
sources of the planner.  A plan that a limit of time or memory cut short is not stored, nor is one
that depends on a function of the user.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from relax_egraph.egraph.engine import Saturated, StopReason
from relax_egraph.egraph.view import View
from relax_egraph.extract import Extraction
from relax_egraph.extract.mip import TIME_LIMIT
from relax_egraph.lower.jit.object_cache import default_cache
from relax_egraph.optimize.cache.extracted import extraction_data, extraction_of
from relax_egraph.optimize.cache.naming import Nameless, name_of, planner_version
from relax_egraph.optimize.cache.saturated import saturated_data, saturated_of
from relax_egraph.optimize.cache.values import Data, of_type

T = TypeVar("T")

_CUT_SHORT = (StopReason.TIME, StopReason.MEMORY, StopReason.CRASH)


@dataclass(frozen=True, slots=True)
class Priced:
    """The program chosen for a region, and the cost of the region operator by operator."""

    extraction: Extraction
    cost_before: float


@dataclass(frozen=True, slots=True)
class PlanCache:
    """The plans of regions in the folder that the environment names now.

    `saturating` and `extracting` are what saturation and extraction depend on besides the region.
    If one of them has no key, nothing is stored.
    """

    saturating: object = None
    extracting: object = None

    def saturated(self, region: object, loaded: View, make: Callable[[], Saturated]) -> Saturated:
        """`loaded` saturated: the entry for `region`, or else the result of `make`."""
        return _kept(
            ("saturated", self.saturating, region),
            make,
            read=lambda data: saturated_of(data, loaded),
            written=lambda result: saturated_data(result) if _is_whole(result) else None,
        )

    def priced(
        self, region: object, sizes: object, saturated: Saturated, make: Callable[[], Priced]
    ) -> Priced:
        """The best program of a `saturated` region at `sizes`: the entry, or else from `make`."""
        if not _is_whole(saturated):
            return make()
        return _kept(
            ("priced", self.saturating, self.extracting, sizes, region),
            make,
            read=lambda data: _priced_of(data, saturated.view),
            written=_priced_data,
        )


def _kept(
    depends: tuple[object, ...],
    make: Callable[[], T],
    read: Callable[[Data], T],
    written: Callable[[T], Data | None],
) -> T:
    """The entry under the key `depends`, as `read` decodes it, or else the result of `make`.

    The result is stored as `written` encodes it, unless that is ``None``.
    """
    cache, version = default_cache(), planner_version()
    if cache.folder is None or version is None:
        return make()
    try:
        name = name_of(version, *depends)
    except Nameless:
        return make()
    if (entry := cache.get(name)) is not None:
        try:
            key, data = json.loads(entry)
            if key == name:
                return read(data)
        except Exception:
            pass  # the file is no plan of this version
    result = make()
    try:
        data = written(result)
        if data is not None:
            cache.put(name, json.dumps([name, data], separators=(",", ":")).encode())
            cache.trim()
    except (Nameless, TypeError):
        pass  # a value without a text: a shape that is a variable
    return result


def _is_whole(saturated: Saturated) -> bool:
    """Whether another run gives the same result: no clock and no other process took part."""
    report = saturated.report
    return not report.notes and not any(phase.stop in _CUT_SHORT for phase in report.phases)


def _priced_of(data: Data, view: View) -> Priced:
    return Priced(extraction_of(data["chosen"], view), of_type(float, data["before"]))


def _priced_data(priced: Priced) -> Data | None:
    if TIME_LIMIT in priced.extraction.status:
        return None
    return {"chosen": extraction_data(priced.extraction), "before": float(priced.cost_before)}
