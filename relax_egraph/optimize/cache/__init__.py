"""The plan cache: a region that was planned once, in any process, is read from disk.

Plans lie in the folder of object files and follow its limits.  The key of a plan is everything that
it depends on: the region, without the values of its leaves; the rules, the machine, the limits; the
sources of the planner.  A saturation that a limit of time or memory cut short is not stored, nor is
what depends on a function of the user.  An extraction is stored with its gap and its effort: one of
more effort continues it.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from relax_egraph.egraph.engine import Saturated, StopReason
from relax_egraph.egraph.view import View
from relax_egraph.extract import Effort, Extraction
from relax_egraph.extract.effort import DEFAULT
from relax_egraph.extract.problem import OPTIMAL
from relax_egraph.lower.jit.object_cache import default_cache
from relax_egraph.optimize.cache.extracted import extraction_data, extraction_of
from relax_egraph.optimize.cache.naming import Nameless, name_of, planner_version
from relax_egraph.optimize.cache.saturated import saturated_data, saturated_of
from relax_egraph.optimize.cache.values import Data, of_type

LOG = logging.getLogger(__name__)

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
    If one of them has no key, nothing is stored.  `effort` is that of extraction.
    """

    saturating: object = None
    extracting: object = None
    effort: Effort = DEFAULT

    def saturated(self, region: object, loaded: View, make: Callable[[], Saturated]) -> Saturated:
        """`loaded` saturated: the entry for `region`, or else the result of `make`."""
        return _kept(
            ("saturated", self.saturating, region),
            lambda _: make(),
            read=lambda data: saturated_of(data, loaded),
            written=lambda result: saturated_data(result) if _is_whole(result) else None,
        )

    def priced(
        self,
        region: object,
        sizes: object,
        saturated: Saturated,
        make: Callable[[Extraction | None], Priced],
    ) -> Priced:
        """The best program of a `saturated` region at `sizes`: the entry, or else from `make`.

        `make` gets the extraction of an entry of less effort, to continue it.
        """
        if not _is_whole(saturated):
            return make(None)
        found, _ = _kept(
            ("priced", self.saturating, self.extracting, sizes, region),
            lambda entry: (make(entry and entry[0].extraction), self.effort),
            read=lambda data: _priced_of(data, saturated.view),
            written=lambda made: _priced_data(*made),
            suffices=lambda entry: _suffices(*entry, self.effort),
        )
        return found


def _kept(
    depends: tuple[object, ...],
    make: Callable[[T | None], T],
    read: Callable[[Data], T],
    written: Callable[[T], Data | None],
    suffices: Callable[[T], bool] = lambda _: True,
) -> T:
    """The entry under the key `depends`, as `read` decodes it, or else the result of `make`.

    `make` gets an entry that does not suffice.  The result is stored as `written` encodes it,
    unless that is ``None``.
    """
    cache, version, what = default_cache(), planner_version(), depends[0]
    if cache.folder is None or version is None:
        why = "the cache is off" if cache.folder is None else "the sources are being edited"
        return _unkept(what, make(None), why)
    try:
        name = name_of(version, *depends)
    except Nameless as reason:
        return _unkept(what, make(None), reason)
    known: T | None = None
    if (entry := cache.get(name)) is not None:
        try:
            key, data = json.loads(entry)
            if key == name and suffices(known := read(data)):
                LOG.debug("%s: read from the cache", what)
                return known
        except Exception as reason:  # the file is no plan of this version
            LOG.debug("%s: the entry of the cache does not read: %r", what, reason)
    result = make(known)
    try:
        data = written(result)
        if data is not None:
            cache.put(name, json.dumps([name, data], separators=(",", ":")).encode())
            cache.trim()
        LOG.debug(
            "%s: made, %s", what, "not kept: a limit cut it short" if data is None else "kept"
        )
    except (Nameless, TypeError) as reason:  # a value without a text: a shape that is a variable
        LOG.debug("%s: made, not kept: %s", what, reason)
    return result


def _unkept(what: object, made: T, why: object) -> T:
    """`made`, which is not stored; the log says why."""
    LOG.debug("%s: made, not kept: %s", what, why)
    return made


def _is_whole(saturated: Saturated) -> bool:
    """Whether another run gives the same result: no clock and no other process took part."""
    report = saturated.report
    return not report.notes and not any(phase.stop in _CUT_SHORT for phase in report.phases)


def _suffices(priced: Priced, effort: Effort, wanted: Effort) -> bool:
    """Whether a search of `effort` that found `priced` need not be continued for one `wanted`."""
    extraction = priced.extraction
    is_close = extraction.status == OPTIMAL or extraction.gap <= wanted.gap
    return is_close or effort.covers(wanted)


def _priced_of(data: Data, view: View) -> tuple[Priced, Effort]:
    seconds, gap = (of_type(float, number) for number in data["effort"])
    priced = Priced(extraction_of(data["chosen"], view), of_type(float, data["before"]))
    return priced, Effort(seconds, gap)


def _priced_data(priced: Priced, effort: Effort) -> Data:
    return {
        "chosen": extraction_data(priced.extraction),
        "before": float(priced.cost_before),
        "effort": [float(effort.seconds), effort.gap],
    }
