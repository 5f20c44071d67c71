"""The sizes of symbols at which programs are compared.

A symbol without a hint has the geometric mean of its possible sizes: the range that `assume` and
the upper bound of its function leave, without 0, where nothing runs.  Without any range that is 64,
the mean of 1 and 4096.  No size is guessed from a name such as ``batch``: estimates list the sizes
that they assume, and a program is correct at every size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from relax_egraph.extract import Hints, Sizes, scenarios_of
from relax_egraph.ir import dims
from relax_egraph.ir.assumptions import Assumptions, Range
from relax_egraph.optimize.variants import Case, Part, middle


@dataclass(frozen=True, slots=True)
class Scenario:
    """Sizes, and the `weight` of costs at these sizes; symbols in `assumed` have no hint."""

    weight: float
    sizes: Sizes
    assumed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sizing:
    """The sizes of a function's symbols, in the plan for one case of the variants.

    `known` are the assumptions on symbols, `bounds` upper bounds of some.
    """

    hints: Hints
    case: Case = ()
    known: Assumptions = field(default_factory=Assumptions)
    bounds: Mapping[str, int] = field(default_factory=dict[str, int])

    def with_values(self, values: Sizes) -> "Sizing":
        """The same, with `values` for symbols of no function."""
        if not values:
            return self
        hints = [(weight, {**sizes, **values}) for weight, sizes in scenarios_of(self.hints)]
        return replace(self, hints=hints)

    def scenarios(self, names: Iterable[str]) -> tuple[Scenario, ...]:
        """The sizes of the symbols `names`, for each hint that lies in the case.

        If no hint does, all hints are used, with sizes of the case for its symbols.
        """
        every = scenarios_of(self.hints)
        inside = [s for s in every if all(s[1].get(p.symbol) in p for p in self.case)]
        return tuple(self._scenario(w, sizes, names) for w, sizes in inside or every)

    def _scenario(self, weight: float, hinted: Sizes, names: Iterable[str]) -> Scenario:
        parts = {p.symbol: p for p in self.case if p.requested}
        ranges, values = dict(self.known.ranges), dict(self.known.values)
        sizes: dict[str, int] = {}
        assumed: set[str] = set()
        for name in sorted(names):
            part = parts.get(name)
            if name in hinted and (part is None or hinted[name] in part):
                sizes[name] = hinted[name]
            elif name in values:
                value = dims.canonical(values[name])
                within = self._scenario(weight, hinted, dims.symbols(value))
                sizes[name] = max(0, dims.evaluate(value, within.sizes))
                assumed |= {name} if within.assumed else set()
            else:
                known = ranges.get(name, Range())
                least, most = _ends(known, part, self.bounds.get(name))
                steps = max(0, middle(least, most) - known.least) // known.step
                sizes[name] = known.least + steps * known.step
                assumed |= {name} if max(1, least) != most else set()
        return Scenario(weight, sizes, frozenset(assumed))


def _ends(known: Range, part: Part | None, bound: int | None) -> tuple[int, int | None]:
    """The least and the greatest size in a range, a `part` and an upper bound."""
    ends = [end for end in (known.most, bound, part and part.most) if end is not None]
    least = max(known.least, part.least if part else 0)
    return least, max(least, min(ends)) if ends else None


def assumed_in(scenarios: Iterable[Scenario]) -> dict[str, int]:
    """The assumed sizes of `scenarios`, by symbol."""
    return {name: s.sizes[name] for s in scenarios for name in sorted(s.assumed)}


def assumed_text(assumed: Mapping[str, int | Sequence[int]]) -> str:
    """``n = 64 (assumed), m = 1, 11 or 260 (assumed)``; empty without assumed sizes."""
    return ", ".join(f"{name} = {_either(sizes)} (assumed)" for name, sizes in assumed.items())


def _either(sizes: int | Sequence[int]) -> str:
    *first, last = [sizes] if isinstance(sizes, int) else sizes
    return f"{', '.join(map(str, first))} or {last}" if first else str(last)


def at_assumed(assumed: Mapping[str, int | Sequence[int]]) -> str:
    """`` at n = 64 (assumed)``, to follow an estimate; empty if nothing is."""
    return f" at {assumed_text(assumed)}" if assumed else ""
