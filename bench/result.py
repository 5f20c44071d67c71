"""The measurements of one workload."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.workloads import Limit, Ratio
from relax_egraph.vm.call_report import CallSum

OURS, UNOPTIMIZED, ONE_THREAD = "relax-egraph", "not optimized", "one thread"
"""Our names: in normal form, without the optimizer, and on one thread beside two."""


@dataclass(frozen=True, slots=True)
class Result:
    """One workload on `threads` threads.

    `seconds` are of one run, by system.  `rates` are the machine's limits per second, by the loop
    that measures them.  `errors` are relative to the largest magnitude of the result.  `left_out`
    is the reason of systems without a time.  `contended` are medians of seconds with a busy core.
    `nbytes` are those of inputs, constants and the result; `kernels` are ours, timed one by one.
    """

    name: str
    threads: int
    limit: Limit
    amount: float
    wanted: Mapping[Ratio, float]
    seconds: Mapping[str, float]
    rates: Mapping[str, float]
    errors: Mapping[str, float]
    left_out: Mapping[str, str]
    contended: Mapping[str, float]
    nbytes: float = 0.0
    kernels: tuple[CallSum, ...] = ()

    @property
    def best_peer(self) -> str | None:
        """The fastest peer; ``None`` if there is none."""
        others = self.seconds.keys() - {OURS, UNOPTIMIZED, ONE_THREAD}
        return min(others, key=self.seconds.__getitem__, default=None)

    @property
    def ratios(self) -> dict[Ratio, float]:
        """Our speed, in the measured units."""
        own, peer = self.seconds[OURS], self.best_peer
        ratios: dict[Ratio, float] = {}
        if peer is not None:
            unit: Ratio = "peer" if self.threads == 1 else "peer on two threads"
            ratios[unit] = self.seconds[peer] / own
        if self.rates:
            ratios["limit"] = self.amount / own / max(self.rates.values())
        if UNOPTIMIZED in self.seconds:
            ratios["unoptimized"] = self.seconds[UNOPTIMIZED] / own
        if ONE_THREAD in self.seconds:
            ratios["two threads"] = self.seconds[ONE_THREAD] / own
        if self.contended:
            ratios["contended"] = self.contended[ONE_THREAD] / self.contended[OURS]
        return ratios

    @property
    def short(self) -> dict[Ratio, float]:
        """The ratios below their bounds."""
        return {unit: r for unit, r in self.ratios.items() if r < self.wanted.get(unit, 0)}
