"""The answers of `why_not`, as data and as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from relax_egraph.base import notebook
from relax_egraph.optimize.sizes import at_assumed

Kind: TypeAlias = Literal["fired", "held back", "not in the run", "partly matched", "absent"]
"""The outcome for a rule at the place of the question.

The rule ``fired``; it matches but was ``held back``, by a ban, a budget, or because its result was
known; it is ``not in the run``; it ``partly matched``; an operator or fact that it needs is
``absent``.
"""

WIDTH = 96
"""The widest premise in the text; a longer one is cut around the part that fails."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A premise that does not hold; `said` is the reason, for the text from `start` to `end`.

    `would` is the nearest match of a rule that would deduce the premise.
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
    """The deepest partial match of `rule` at value `at` of `function`.

    `nodes` of `of_nodes` operators match.  `misses` are the premises that do not hold, in the order
    of the rule; premises that depend on them are not examined.  `values` are the variables of the
    rule in words.  `admitted` says why the rule is not in the run; it is empty for a rule that is.
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
        """Whether all premises hold."""
        return not self.misses

    @property
    def first(self) -> Miss:
        """The first premise that fails, in the rule that would deduce it if there is one."""
        miss = self.misses[0]
        return miss.would.first if miss.would and miss.would.misses else miss

    def lines(self) -> Iterator[str]:
        """The summary, then the misses and the variables."""
        yield self.summary()
        yield from (f"  {line}" for line in self.below())

    def summary(self) -> str:
        """One line: the value, and the number of operators that match."""
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
        """The first misses, the number of all others, and the variables."""
        for miss in self.misses[:_SHOWN]:
            yield from miss.lines()
        if (more := len(self.misses) - _SHOWN) > 0:
            yield "and another premise fails" if more == 1 else f"and {more} more premises fail"
        if self.values and not all(miss.would for miss in self.misses):
            yield ", ".join(f"{name} = {value}" for name, value in self.values.items())


_SHOWN = 2


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The answer to why `rule`, defined at `place`, did not match; `said` is a sentence about it.

    `fired` are the values where the rule fired, `near` its deepest partial matches elsewhere, the
    deepest first.  `costs` are the costs of the optimized program with and without the rule, in
    seconds; `assumed` are the sizes of symbols in them for which there is no hint.  `cut` tells
    that the search left out a part of the e-graph.
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

    def _repr_html_(self) -> str:
        return notebook.text(str(self))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def _compared(having: float, lacking: float, at: str) -> str:
    """A sentence on the cost of the optimized program with and without a rule, `at` some sizes."""
    with_it, without_it = (f"{seconds * 1e6:.2f} µs" for seconds in (having, lacking))
    if with_it == without_it:
        same = f"the program costs {with_it} with and without it{at}"
        return f"{same}: none of its results is cheaper"
    return f"the program costs {with_it} with it, {without_it} without it{at}"


def _window(text: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of `text` around a span, at most `WIDTH` columns, and the span within that part."""
    if len(text) <= WIDTH:
        return text, start, end
    end = min(end, start + WIDTH - 2)
    room = WIDTH - 2 - (end - start)
    left = max(0, min(start - room // 2, len(text) - WIDTH + 2))
    right = min(len(text), left + WIDTH - 2)
    before, after = "…" * (left > 0), "…" * (right < len(text))
    shift = len(before) - left
    return before + text[left:right] + after, start + shift, min(end, right) + shift
