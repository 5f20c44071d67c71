"""Back-off: a rule that matches too often pauses for some iterations, in favour of other rules.

After egg's BackoffScheduler (Willsey et al., POPL 2021).  The one in egglog is not used: it loses
its state with each command, and makes an iteration six times slower.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from relax_egraph.egraph.saturation.schedule import Phase


class BackOff:
    """The rules that pause in one run of `phase`; iterations are counted from 1.

    A rule loses no matches: it finds them when it is back.
    """

    def __init__(self, phase: Phase) -> None:
        self._phase = phase
        self._times: Counter[str] = Counter()
        self._back: dict[str, int] = {}
        self.sat_out: Counter[str] = Counter()

    def active(self, rules: Iterable[str], iteration: int) -> tuple[str, ...]:
        """The rules in `rules` that run in `iteration`."""
        self._back = {rule: back for rule, back in self._back.items() if back > iteration}
        self.sat_out.update(self._back.keys())
        return tuple(rule for rule in rules if rule not in self._back)

    def observe(self, matches: Mapping[str, int], nodes: int, iteration: int) -> None:
        """Pause the rules that matched too often in `iteration`, which began with `nodes`."""
        limit = max(self._phase.match_limit, nodes)
        for rule, count in matches.items():
            times = self._times[rule]
            if count > limit * 2**times:
                self._back[rule] = iteration + 1 + self._phase.ban_length * 2**times
                self._times[rule] += 1

    def release(self) -> bool:
        """End the pause of the rules that are due first; whether there are any."""
        if not self._back:
            return False
        first = min(self._back.values())
        self._back = {rule: back for rule, back in self._back.items() if back > first}
        return True
