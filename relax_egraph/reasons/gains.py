"""Which rules a gain is owed to: the fewest that buy it, and what each is worth.

More rules find no worse program: so what is not in a set of rules that find the best one can be
left out, all together or one by one, and nothing is lost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from relax_egraph.base.parameters import NAMES, number, optional, takes
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.optimize.session import OPTIONS
from relax_egraph.optimize.sizes import at_assumed
from relax_egraph.reasons.minimize import Outcome, minimal
from relax_egraph.reasons.restricted import TOLD, Restricted, Told
from relax_egraph.rules import RULES, Given

_SAME = 1e-9
"""Costs that differ by this part are one: they are sums in another order."""

_NEARLY = 0.999
"""The part of the gain that rules buy which are not redundant: the model knows costs no better."""


_PART = number("a part of the whole, from 0 to 1", lambda value: 0 <= value <= 1)


@dataclass(frozen=True, slots=True)
class Gain:
    """What a rule is worth: the best program without it has `cost`, in seconds.

    `share` is the part of the whole gain that is lost with it.  Shares need not have the sum 1:
    where two rules are needed together, each loses the whole; where either is enough, neither does.
    `assumed` are the sizes of symbols that the costs rest on and no hint has said.
    """

    rule: Rule
    cost: float
    share: float
    assumed: Mapping[str, Sequence[int]]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        said = {"law": self.rule.law, "place": str(self.rule.span)}
        told = {
            "cost": self.cost,
            "share": self.share,
            "assumed": {n: list(sizes) for n, sizes in self.assumed.items()},
        }
        return {"rule": self.rule.name, **said, **told}


@dataclass(frozen=True, slots=True)
class CostBisected:
    """The fewest `rules` that buy so much of a gain, and what becomes of the others.

    The whole gain is from `cost_before`, each operator by itself, to `cost`, of the best program
    that all rules find, in seconds.  With the `rules` alone it is `cost_with_rules`; without any
    one of them, it is more than was asked for.

    `gains` are those of a minimal set of rules that buys 0.999 of the gain, or the `gain` asked for
    if that is more, the largest first; without one of them others may do as well.  All other rules
    that matched are `redundant`: they can be left out together, and no more is lost.  `assumed` are
    the sizes of symbols that costs rest on and no hint has said.
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
        """The part of the whole gain that the rules alone buy."""
        if self.cost_before <= self.cost:
            return 1.0  # there is nothing to buy
        return _share(self.cost_before - self.cost_with_rules, self.cost_before, self.cost)

    @property
    def alone(self) -> tuple[Rule, ...]:
        """The rules that can be left out one by one: no share of the gain is lost with one."""
        return (*self.redundant, *(g.rule for g in self.gains if g.share <= _SAME))

    @property
    def summary(self) -> str:
        """What is bought, and how that was found."""
        whole = f"{_us(self.cost_before)} → {_us(self.cost)}{at_assumed(self.assumed)}"
        bought = f"{self.bought:.1%} of the gain, {whole}, is bought by {_count(self.rules)}"
        left_out = f"{_count(self.redundant)} can be left out together"
        return f"{bought}; {left_out} ({self.tries} tries, {self.seconds:.1f} s)"

    def __str__(self) -> str:
        lines = (f"{rule.name} ({rule.span}): {rule.law}" for rule in self.rules)
        return "\n".join((*lines, self.summary))

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


@takes(module=MODULE, rules=RULES, gain=_PART, told=TOLD, **OPTIONS)
def bisect_cost(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    gain: float = 0.9,
    told: Told | None = None,
    **options: Any,
) -> CostBisected:
    """Find the fewest rules that buy the part `gain` of what all rules gain, by the cost model.

    `rules` and `options` are arguments of `optimize`.  The set is minimal: without any one of its
    rules, the others buy less, as these do or as a larger set was seen to.  What each rule that the
    best program needs is worth is found by leaving it out, which other rules may make good.
    `told` hears of each try.

    Raises ``ValueError`` for a `gain` that is not from 0 to 1, a module without dataflow blocks,
    and one for which no rule matches.
    """
    begin = perf_counter()
    some = Restricted.of(module, rules, options, told)
    best = some.whole()
    candidates, before, cost = _matched(some, best), best.cost_before, best.cost
    enough = _finding(some, before - max(gain, _NEARLY) * (before - cost))
    proven = some.proven(best)
    needed = minimal(proven if enough(proven) == "fails" else candidates, enough)
    chosen = minimal(needed, _finding(some, before - gain * (before - cost)))
    ordered = _gains(some, candidates, needed, best)
    return CostBisected(
        gain=gain,
        rules=tuple(some.book[name] for name in chosen),
        cost_before=before,
        cost=cost,
        cost_with_rules=some.explained(chosen).cost,
        gains=ordered,
        redundant=tuple(some.book[name] for name in candidates if name not in needed),
        tries=some.tries,
        seconds=perf_counter() - begin,
        assumed=best.assumed,
    )


@takes(module=MODULE, rules=RULES, only=optional(NAMES), told=TOLD, **OPTIONS)
def gains(
    module: IRModule,
    rules: Sequence[Given] = (),
    *,
    only: Iterable[str] | None = None,
    told: Told | None = None,
    **options: Any,
) -> tuple[Gain, ...]:
    """What each rule that matched is worth, the largest share first; `only` names some.

    `rules` and `options` are arguments of `optimize`, which is done once for each rule.  Raises
    ``ValueError`` for a module without dataflow blocks, one for which no rule matches, and a name
    in `only` that no rule has.
    """
    some = Restricted.of(module, rules, options, told)
    best = some.whole()
    candidates = _matched(some, best)
    wanted = None if only is None else some.known(only)
    names = [n for n in candidates if wanted is None or n in wanted]
    return _gains(some, candidates, names, best)


def _matched(some: Restricted, best: Explanation) -> tuple[str, ...]:
    """The rules that matched; raises ``ValueError`` if none did."""
    if candidates := some.matched(best):
        return candidates
    raise ValueError("no rule matches anything in the module")


def _finding(some: Restricted, cost: float) -> Callable[[tuple[str, ...]], Outcome]:
    """Whether rules find a program of at most `cost`."""

    def outcome(chosen: tuple[str, ...]) -> Outcome:
        return "fails" if some.buys(chosen, cost * (1 + _SAME)) else "passes"

    return outcome


def _gains(
    some: Restricted, candidates: Sequence[str], names: Iterable[str], best: Explanation
) -> tuple[Gain, ...]:
    before, cost = best.cost_before, best.cost
    found: list[Gain] = []
    for name in names:
        without = some.cost(other for other in candidates if other != name)
        share = _share(without - cost, before, cost)
        found.append(Gain(some.book[name], without, share, best.assumed))
    return tuple(sorted(found, key=lambda gain: -gain.share))


def _share(lost: float, before: float, cost: float) -> float:
    """`lost` as a part of the whole gain; less than the solver's rounding is nothing."""
    whole = before - cost
    return lost / whole if whole > _SAME * before and abs(lost) > _SAME * before else 0.0


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"


def _count(rules: Sequence[Rule]) -> str:
    return "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
