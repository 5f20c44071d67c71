"""What failed, in words: the class and what it holds instead, or both values of a premise."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.rulebook.guards import GUARD_NAMES
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.reasons.why_not.naming import Names
from relax_egraph.reasons.why_not.node_words import node_said
from relax_egraph.reasons.why_not.partial import Failure, Partial
from relax_egraph.reasons.why_not.plan import ENGINE, OF_VALUES, Conjunct
from relax_egraph.reasons.why_not.search import Search
from relax_egraph.verify.instances.primitives import Fails

_NEAR = 0.05
"""Numbers that differ by no more than this part are told to be near."""

_ROWS = 2
"""So many rows that are there instead of one are told."""


class Words:
    """Tells failures of partial matches that `search` found, with the `names` of its e-graph.

    `excluded` says why a rule is not in the run, and nothing of one that is.
    """

    def __init__(self, search: Search, names: Names, excluded: Callable[[Rule], str]) -> None:
        self.search, self.names, self.database = search, names, search.database
        self.excluded = excluded

    def failure(self, partial: Partial, failure: Failure) -> str:
        """Why a conjunct of `partial` does not hold."""
        match failure.how:
            case "fact":
                return self._fact(partial, failure)
            case "false":
                return self._false(partial, failure)
            case _:
                return node_said(self.names, failure)

    def _fact(self, partial: Partial, failure: Failure) -> str:
        c = failure.conjunct
        if c.head in ENGINE and 0 in failure.known:
            return self._engine(partial, failure)
        if c.head in OF_VALUES and isinstance(failure.known.get(0), Key):
            return self._of_value(c.head, failure.known[0])
        keys = {k: v for k, v in failure.known.items() if isinstance(v, Key)}
        first = dict(list(keys.items())[:1])
        rows = self.database.where(c.head, first) if first else []
        if rows and c.args:
            shown = "; ".join(self._row(c, row) for row in rows[:_ROWS])
            return f"there is {shown}"
        return self._undeduced(c, failure)

    def _undeduced(self, c: Conjunct, failure: Failure) -> str:
        """That no rule deduced a relation, and which would have."""
        deducing = self.search.book.deducing.get(c.head, ())
        rules = list(dict.fromkeys(pattern.rule.name for pattern, _ in deducing))
        of = [self.names.of(v) for v in failure.known.values() if isinstance(v, Key)]
        about = f"not known of {', '.join(of)}" if of else "not known"
        if not rules:
            return f"{about}, and no rule deduces it"
        if failure.would is None:
            more = f" or {len(rules) - _ROWS} more" if len(rules) > _ROWS else ""
            return f"{about}; {', '.join(rules[:_ROWS])}{more} would deduce it"
        would = failure.would.plan.pattern.rule
        said = f"{about}; {would.name} ({place_of(would)}) would deduce it"
        if excluded := self.excluded(would):
            return f"{said}, but is not in the run: {excluded}"
        others = "another rule" if len(rules) == 2 else f"{len(rules) - 1} other rules"
        return said + f" ({others}, too)" * (len(rules) > 1)

    def _engine(self, partial: Partial, failure: Failure) -> str:
        """A fact of a value is unknown, or another."""
        c, key = failure.conjunct, failure.known[0]
        what, name = _WHAT[c.head], self.names.of(key)
        rows = self.database.where(c.head, {0: key})
        needed = failure.known.get(1)
        if not rows:
            unknown = {
                "const-scalar": f"{name} is not one known number",
                "source-index": f"{name} is made by rules: it is no value of the program",
            }
            return unknown.get(c.head, f"the {what} of {name} is not known")
        there = rows[0][1]
        if needed is None:
            return f"the {what} of {name} is {self.names.of(there)}"
        other = next((h for h in partial.held if _says(h, c)), None)
        if other is not None and isinstance(other.args[0], str):
            twin = self.names.of(partial.values[other.args[0]])
            said = (
                f"the {what} of {name} is {self.names.of(there)},"
                f" that of {twin} is {self.names.of(needed)}"
            )
        else:
            about = "this" if c.head == "const-scalar" else f"the {what} of {name}"
            said = f"{about} is {self.names.of(there)}; needed is {self.names.of(needed)}"
        return said + self._how_near(c.head, there, needed, name)

    def _how_near(self, head: str, there: Any, needed: Any, name: str) -> str:
        if head == "shape-of" and (to := _broadcast(there, needed)):
            return f": a broadcast is missing, to {self.names.of(to)}"
        if isinstance(there, float) and isinstance(needed, float):
            return off(there, needed)
        return ""

    def _of_value(self, head: str, key: Key) -> str:
        name = self.names.of(key)
        match head:
            case "is-float":
                rows = self.database.where("dtype-of", {0: key})
                dtype = rows[0][1] if rows else "of unknown dtype"
                return f"{name} is {dtype}, and no float32 or float64"
            case "is-const":
                inputs = sorted(set(self._inputs(key, set())))
                by = f": it depends on {', '.join(inputs[:3])}" if inputs else ""
                if inputs == [name]:
                    by = ": it is an input"
                return f"{name} is not constant{by}"
            case _:
                return f"{name} loses more than the tolerance allows"

    def _inputs(self, key: Key, seen: set[Key]) -> Iterator[str]:
        todo = [key]
        while todo:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            if self.names.origin(key) == "an input":
                yield self.names.of(key)
            todo += self.database.nodes[key][0].operands if self.database.nodes.get(key) else ()

    def _false(self, partial: Partial, failure: Failure) -> str:
        c = failure.conjunct
        if len(failure.known) < len(c.places):
            whole = failure.known.get(len(c.args))
            return f"{self.names.of(whole)} is of another form"
        args = [failure.known[k] for k in range(len(c.args))]
        if c.head in GUARD_NAMES:
            a, b = map(self.names.of, args)
            said = {
                "dim-equal": f"{a} == {b}",
                "dim-divides": f"{b} % {a} == 0",
                "dim-ge": f"{a} >= {b}",
            }[c.head]
            numbers = all(isinstance(d, int) for d in args)
            return f"{said} is false" if numbers else f"{said} is not proven; it can be assumed"
        shown = [self.names.of(a) for a in args]
        variables = sorted(v for v in self._below(partial, c) if v in partial.values)
        values = ", ".join(f"{v} = {self.names.of(partial.values[v])}" for v in variables)
        given = f", for {values}" if values else ""
        if c.result is None:
            infix = len(shown) == 2 and not c.head[0].isalpha()
            said = f" {c.head} ".join(shown) if infix else f"({' '.join((c.head, *shown))})"
            return f"{said} is false{given}{self._numbers(partial, c)}"
        needed = failure.known.get(len(c.args))
        try:
            found = self.search.computed(c, partial.values)
        except Fails:
            outside = " outside of egglog" * (c.head == "unstable-vec-map")
            return f"this has no value{outside}{given}"
        near = ""
        if isinstance(found, float) and isinstance(needed, float):
            near = off(found, needed)
        return f"this is {self.names.of(found)}; needed is {self.names.of(needed)}{near}{given}"

    def _numbers(self, partial: Partial, c: Conjunct) -> str:
        """How near two numbers are that a comparison of their difference finds too far apart."""
        for part in partial.plan.conjuncts:
            if part.premise == c.premise and part.head == "-" and c.start < part.start < c.end:
                match [partial.values.get(a) for a in part.args if isinstance(a, str)]:
                    case [float(a), float(b)]:
                        return off(a, b)
                    case _:
                        pass
        return ""

    def _below(self, partial: Partial, c: Conjunct) -> Iterator[str]:
        """The variables that the rule writes within `c`."""
        inside = (
            p
            for p in partial.plan.conjuncts
            if p.premise == c.premise and c.start <= p.start and p.end <= c.end
        )
        names = {a for a in partial.plan.names.values() if isinstance(a, str)}
        yield from {a for p in inside for a in p.args if isinstance(a, str) and a in names}

    def _row(self, c: Conjunct, row: tuple[Any, ...]) -> str:
        args = " ".join(self.names.of(v) for v in row[: len(c.args)])
        result = "" if c.result is None else f" = {self.names.of(row[-1])}"
        return f"({c.head} {args}){result} instead"


_WHAT = {
    "shape-of": "shape",
    "rank-of": "rank",
    "dtype-of": "dtype",
    "numel-of": "number of elements",
    "const-scalar": "value",
    "source-index": "position in the program",
    "dim-text": "text",
}


def place_of(rule: Rule) -> str:
    """Where `rule` stands: ``rules/idioms.egg:41``."""
    return f"{rule.span.file}:{rule.span.line}"


def off(there: float, needed: float) -> str:
    """By how much a number is off another, if they are near."""
    if there == needed or not (math.isfinite(there) and math.isfinite(needed)):
        return ""
    share = abs(there - needed) / max(abs(needed), abs(there))
    return f": near, but off by {share:.2g} of it" if share <= _NEAR else ""


def _broadcast(a: Any, b: Any) -> tuple[Any, ...] | None:
    """The shape that one of two shapes is broadcast to, if it is that of the other."""
    if not (isinstance(a, tuple) and isinstance(b, tuple)):
        return None
    for small, large in ((a, b), (b, a)):
        tail = large[len(large) - len(small) :]
        fits = len(small) <= len(large) and small != large
        if fits and all(s in (1, e) for s, e in zip(small, tail, strict=True)):
            return large
    return None


def _says(held: Conjunct, c: Conjunct) -> bool:
    """Whether `held` gave the value that `c` does not have."""
    return held.head == c.head and held.result == c.result and isinstance(c.result, str)
