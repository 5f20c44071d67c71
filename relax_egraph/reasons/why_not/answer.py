"""Why a rule did not match, as data and as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from relax_egraph.optimize.sizes import at_assumed

Kind: TypeAlias = Literal["fired", "held back", "not in the run", "partly matched", "absent"]
"""What became of the rule, where it was asked about.

It ``fired``; it was ``held back`` although it matches, by a ban, a budget, or because its result
was known; it is ``not in the run``; it ``partly matched``; what it needs is ``absent``.
"""

WIDTH = 96
"""Columns that a premise is shown in; of a longer one the part around what failed."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A premise that does not hold: `said` is why, of what stands from `start` to `end` in it.

    `would` is the nearest match of a rule that would deduce it.
    """

    premise: str
    start: int
    end: int
    said: str
    would: "Near | None" = None

    def lines(self) -> Iterator[str]:
        """The premise, under it carets and the reason."""
        text, start, end = _window(self.premise, self.start, self.end)
        yield text
        yield " " * start + "^" * (end - start) + " " + self.said
        if self.would:
            yield from (f"  {line}" for line in self.would.below())


@dataclass(frozen=True, slots=True)
class Near:
    """A match of `rule` as deep as it goes at value `at`, or what it would be (`admitted` is why).

    `nodes` of `of_nodes` operators match.  `misses` are the premises that do not hold, in the
    order in which they were looked at; what depends on them was not.  `values` are variables of
    the rule in words.
    """

    rule: str
    place: str
    function: str
    at: str
    nodes: int
    of_nodes: int
    misses: tuple[Miss, ...]
    values: Mapping[str, str]
    admitted: str = ""

    @property
    def matches(self) -> bool:
        """Whether all of it holds."""
        return not self.misses

    @property
    def first(self) -> Miss:
        """The first premise that failed, of the rule that would deduce it rather than its own."""
        miss = self.misses[0]
        return miss.would.first if miss.would and miss.would.misses else miss

    def lines(self) -> Iterator[str]:
        """What matched, then each miss."""
        yield self.summary()
        yield from (f"  {line}" for line in self.below())

    def summary(self) -> str:
        """In one line how deep it goes."""
        where = f"at {self.at} of {self.function}: "
        fail = "1 premise fails" if len(self.misses) == 1 else f"{len(self.misses)} premises fail"
        if self.matches:
            return f"{where}all of it matches"
        if not self.of_nodes:
            return where + fail
        if self.nodes == self.of_nodes:
            nodes = "its node matches" if self.nodes == 1 else f"its {self.nodes} nodes match"
            return f"{where}{nodes}, {fail}"
        return f"{where}{self.nodes} of its {self.of_nodes} nodes match"

    def below(self) -> Iterator[str]:
        """The misses, the first in full, and the variables."""
        for miss in self.misses[:_SHOWN]:
            yield from miss.lines()
        if (more := len(self.misses) - _SHOWN) > 0:
            yield "and another premise fails" if more == 1 else f"and {more} more premises fail"
        if self.values and not all(miss.would for miss in self.misses):
            yield ", ".join(f"{name} = {value}" for name, value in self.values.items())


_SHOWN = 2


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why `rule`, which stands at `place`, did not match; `said` is the answer in a sentence.

    `fired` are the values where it did, `near` its deepest matches elsewhere, the deepest first.
    `costs` are those of the optimized program with and without the rule, in seconds, and `assumed`
    the sizes of symbols that they rest on and no hint has said.  `cut` says that the e-graph has
    more than was looked at.
    """

    rule: str
    place: str
    kind: Kind
    said: str
    fired: tuple[str, ...] = ()
    near: tuple[Near, ...] = ()
    costs: tuple[float, float] | None = None
    cut: bool = False
    assumed: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])

    def __str__(self) -> str:
        lines = [f"rule {self.rule} ({self.place}) {self.said}"]
        if self.costs:
            lines.append(f"  {_compared(*self.costs, at_assumed(self.assumed))}")
        for near in self.near:
            lines += [f"  {line}" for line in near.lines()]
        if self.cut:
            lines.append("the e-graph is large: not every candidate was looked at")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def _compared(having: float, lacking: float, at: str) -> str:
    """What the optimized program costs with and without a rule, in seconds, `at` some sizes."""
    first, second = (f"{seconds * 1e6:.2f} µs" for seconds in (having, lacking))
    if first == second:
        same = f"the program costs {first} with and without it{at}"
        return f"{same}: nothing that it makes is cheaper"
    return f"the program costs {first} with it, {second} without it{at}"


def _window(text: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of `text` around a span that fits into `WIDTH` columns, and the span in it."""
    if len(text) <= WIDTH:
        return text, start, end
    end = min(end, start + WIDTH - 2)
    room = WIDTH - 2 - (end - start)
    first = max(0, min(start - room // 2, len(text) - WIDTH + 2))
    last = min(len(text), first + WIDTH - 2)
    before, after = "…" * (first > 0), "…" * (last < len(text))
    shift = len(before) - first
    return before + text[first:last] + after, start + shift, min(end, last) + shift
