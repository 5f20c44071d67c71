"""Ablation of rules: the gain of each rule, and the smallest set of rules with most of the gain.

More rules find no worse program.  If a set of rules finds the best program, all other rules can be
left out, together or one by one, at no loss.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from relax_egraph.base import notebook
from relax_egraph.base.parameters import NAMES, number, optional, takes
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.optimize.session import OPTIONS
from relax_egraph.optimize.sizes import at_assumed
from relax_egraph.reasons.minimize import Outcome, minimal
from relax_egraph.reasons.progress import PROGRESS, Progress, tries
from relax_egraph.reasons.restricted import Restricted
from relax_egraph.rules import RULES, Given

_SAME = 1e-9
"""Costs with a smaller relative difference are equal: they are sums in another order."""

_NEARLY = 0.999
"""The rules that are not redundant reach this share of the gain: the cost model is no finer."""

_PART = number("a part of the whole, from 0 to 1", lambda value: 0 <= value <= 1)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of a rule: the best program without it has `cost`, in seconds.

    `share` is the share of the whole gain that is lost without the rule.  Shares need not sum to 1:
    if two rules are needed together, each has the whole share; if either is enough, both have none.
    `assumed` are the sizes of symbols in the costs for which there is no hint.
    """

    rule: Rule
    cost: float
    share: float
    assumed: Mapping[str, Sequence[int]]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "rule": self.rule.name,
            "law": self.rule.law,
            "place": str(self.rule.span),
            "cost": self.cost,
            "share": self.share,
            "assumed": {n: list(sizes) for n, sizes in self.assumed.items()},
        }


@dataclass(frozen=True, slots=True)
class CostBisected:
    """A minimal set of `rules` that reaches the share `gain` of the gain of all rules.

    The whole gain is `cost_before`, with each operator by itself, less `cost`, that of the best
    program with all rules, in seconds.  The `rules` alone reach `cost_with_rules`; without any one
    of them the cost is too high.

    `gains` are those of a minimal set of rules that reaches 0.999 of the gain, or `gain` if that is
    more, the largest first; other rules may replace one of them.  All other rules that matched are
    `redundant`: they can be left out together at no further loss.  `assumed` are the sizes of
    symbols in the costs for which there is no hint.
    """

    gain: float
    rules: tuple[Rule, ...]
    cost_before: float
    cost: float
    cost_with_rules: float
    gains: tuple[Gain, ...]
    redundant: tuple[Rule, ...]
    tries: int
    seconds: float
    assumed: Mapping[str, Sequence[int]]

    @property
    def bought(self) -> float:
        """The share of the whole gain that the rules alone reach."""
        if self.cost_before <= self.cost:
            return 1.0  # there is nothing to gain
        return _share(self.cost_before - self.cost_with_rules, self.cost_before, self.cost)

    @property
    def alone(self) -> tuple[Rule, ...]:
        """The rules that can be left out one at a time at no loss."""
        return (*self.redundant, *(g.rule for g in self.gains if g.share <= _SAME))

    @property
    def summary(self) -> str:
        """The share of the gain, and the number of rules, redundant rules and tries."""
        whole = f"{_us(self.cost_before)} → {_us(self.cost)}{at_assumed(self.assumed)}"
        bought = f"{self.bought:.1%} of the gain, {whole}, is bought by {_count(self.rules)}"
        left_out = f"{_count(self.redundant)} can be left out together"
        return f"{bought}; {left_out} ({self.tries} tries, {self.seconds:.1f} s)"

    def __str__(self) -> str:
        lines = (f"{rule.name} ({rule.span}): {rule.law}" for rule in self.rules)
        return "\n".join((*lines, self.summary))

    def _repr_html_(self) -> str:
        return notebook.text(str(self))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, costs in seconds."""
        return {
            "gain": self.gain,
            "rules": [rule.name for rule in self.rules],
            "bought": self.bought,
            "cost_before": self.cost_before,
            "cost": self.cost,
            "cost_with_rules": self.cost_with_rules,
            "gains": [gain.as_dict() for gain in self.gains],
            "redundant": [rule.name for rule in self.redundant],
            "redundant_alone": [rule.name for rule in self.alone],
            "assumed": {n: list(sizes) for n, sizes in self.assumed.items()},
            "tries": self.tries,
            "seconds": self.seconds,
        }


@takes(module=MODULE, rules=RULES, gain=_PART, progress=PROGRESS, **OPTIONS)
def bisect_cost(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    gain: float = 0.9,
    progress: Progress | None = None,
    **options: Any,
) -> CostBisected:
    """Find the smallest set of rules that reaches the share `gain` of the gain, by the cost model.

    `rules` and `options` are arguments of `optimize`.  The set is minimal: without any one of its
    rules, the others gain less, or a larger set was seen to gain less.  The gain of each rule that
    the best program needs is measured by leaving the rule out; other rules may replace it.
    `progress` is called before each try; without it, a terminal or a notebook shows the tries.

    Raises ``ValueError`` for a `gain` that is not from 0 to 1, a module without dataflow blocks,
    and a module that no rule matches.
    """
    begin = perf_counter()
    with tries("bisecting", progress) as told:
        return cost_bisected(Restricted.of(module, rules, options, told), gain, begin)


def cost_bisected(restricted: Restricted, gain: float, begin: float) -> CostBisected:
    """The bisection of a `restricted` optimization, which began at `begin` of ``perf_counter``."""
    best = restricted.whole()
    candidates, before, cost = _matched(restricted, best), best.cost_before, best.cost
    enough = _reaching(restricted, before - max(gain, _NEARLY) * (before - cost))
    proven = restricted.proven(best)
    needed = minimal(proven if enough[0](proven) == "fails" else candidates, *enough)
    chosen = minimal(needed, *_reaching(restricted, before - gain * (before - cost)))
    ordered = _gains(restricted, candidates, needed, best)
    return CostBisected(
        gain=gain,
        rules=tuple(restricted.book[name] for name in chosen),
        cost_before=before,
        cost=cost,
        cost_with_rules=restricted.cost_anew(chosen),
        gains=ordered,
        redundant=tuple(restricted.book[name] for name in candidates if name not in needed),
        tries=restricted.tries,
        seconds=perf_counter() - begin,
        assumed=best.assumed,
    )


@takes(module=MODULE, rules=RULES, only=optional(NAMES), progress=PROGRESS, **OPTIONS)
def gains(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    only: Iterable[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[Gain, ...]:
    """The gain of each rule that matched, or of those in `only`, the largest share first.

    `rules` and `options` are arguments of `optimize`, which runs once for each rule.  Raises
    ``ValueError`` for a module without dataflow blocks, a module that no rule matches, and a name
    in `only` that no rule has.
    """
    with tries("leaving out rules", progress) as told:
        restricted = Restricted.of(module, rules, options, told)
        best = restricted.whole()
        candidates = _matched(restricted, best)
        wanted = None if only is None else restricted.known(only)
        names = [n for n in candidates if wanted is None or n in wanted]
        return _gains(restricted, candidates, names, best)


def _matched(restricted: Restricted, best: Explanation) -> tuple[str, ...]:
    """The rules that matched; raises ``ValueError`` if none did."""
    if candidates := restricted.matched(best):
        return candidates
    raise ValueError("no rule matches anything in the module")


def _reaching(
    restricted: Restricted, cost: float
) -> tuple[Callable[[tuple[str, ...]], Outcome], Callable[[Iterable[tuple[str, ...]]], object]]:
    """What `minimal` takes: sets of rules "fail" that find a program of at most `cost`."""
    most = cost * (1 + _SAME)

    def outcome(chosen: tuple[str, ...]) -> Outcome:
        return "fails" if restricted.reaches(chosen, most) else "passes"

    return outcome, lambda sets: restricted.expect_to_reach(sets, most)


def _gains(
    restricted: Restricted, candidates: Sequence[str], names: Sequence[str], best: Explanation
) -> tuple[Gain, ...]:
    before, cost = best.cost_before, best.cost
    by_rule: list[Gain] = []
    others = [[other for other in candidates if other != name] for name in names]
    for place, name in enumerate(names):
        restricted.expect_costs(others[place:])
        without = restricted.cost(others[place])
        share = _share(without - cost, before, cost)
        by_rule.append(Gain(restricted.book[name], without, share, best.assumed))
    return tuple(sorted(by_rule, key=lambda gain: -gain.share))


def _share(lost: float, before: float, cost: float) -> float:
    """`lost` as a share of the whole gain; 0 if it is below the solver's rounding."""
    whole = before - cost
    return lost / whole if whole > _SAME * before and abs(lost) > _SAME * before else 0.0


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"


def _count(rules: Sequence[Rule]) -> str:
    return "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
