"""Plans of regions on disk: a region that was planned once, in any process, is only read.

They lie in the folder of the kernels' objects, under its rules.  A plan is kept under a name for
all that it depends on: the region, but for what its leaves hold; the rules, the machine and the
limits; the sources of what makes plans.  What time or memory cut short is not kept, nor is what
depends on functions of the user, which have no name.
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
    """The program chosen for a region, and what the region cost before, operator by operator."""

    extraction: Extraction
    cost_before: float


@dataclass(frozen=True, slots=True)
class PlanCache:
    """The plans of regions in the folder that the environment names now.

    `saturating` and `extracting` are what these two depend on besides the region; where they have
    no name that says it in every process, nothing is kept.
    """

    saturating: object = None
    extracting: object = None

    def saturated(self, region: object, loaded: View, make: Callable[[], Saturated]) -> Saturated:
        """`loaded` saturated; `make` does so, if that is not kept for such a `region`."""
        return _kept(
            ("saturated", self.saturating, region),
            make,
            read=lambda data: saturated_of(data, loaded),
            written=lambda made: saturated_data(made) if _is_whole(made) else None,
        )

    def priced(
        self, region: object, sizes: object, saturated: Saturated, make: Callable[[], Priced]
    ) -> Priced:
        """The program that is best at `sizes` of such a `region`, as it is `saturated`."""
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
    """What `read` makes of the entry for what it `depends` on; else what `make` does.

    That is `written` to be the entry, unless it is ``None``.
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
            found_name, data = json.loads(entry)
            if found_name == name:
                return read(data)
        except Exception:
            pass  # whatever this is, it is no plan that was written here
    made = make()
    try:
        data = written(made)
        if data is not None:
            cache.put(name, json.dumps([name, data], separators=(",", ":")).encode())
            cache.trim()
    except (Nameless, TypeError):
        pass  # it holds what is no data: a shape that is a variable
    return made


def _is_whole(saturated: Saturated) -> bool:
    """Whether another run would give the same: no clock and no other process had a part in it."""
    report = saturated.report
    return not report.notes and not any(phase.stop in _CUT_SHORT for phase in report.phases)


def _priced_of(data: Data, view: View) -> Priced:
    return Priced(extraction_of(data["chosen"], view), of_type(float, data["before"]))


def _priced_data(priced: Priced) -> Data | None:
    if TIME_LIMIT in priced.extraction.status:
        return None
    return {"chosen": extraction_data(priced.extraction), "before": float(priced.cost_before)}
