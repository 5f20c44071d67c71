"""Messages for the failures of a partial match: the fact, node or value that is there instead."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.rulebook.guards import GUARD_NAMES
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.reasons.why_not.naming import Names
from relax_egraph.reasons.why_not.node_words import node_message
from relax_egraph.reasons.why_not.partial import Failure, Partial
from relax_egraph.reasons.why_not.plan import ENGINE, OF_VALUES, Conjunct
from relax_egraph.reasons.why_not.search import Search
from relax_egraph.verify.instances.primitives import Fails

_NEAR = 0.05
"""Messages call numbers near if their relative difference is at most this."""

_ROWS = 2
"""The most rows in a message about a missing row."""


class Words:
    """Writes messages for failures of the matches of `search`, with the `names` of its e-graph.

    `excluded` says why a rule is not in the run; its text is empty for a rule that is.
    """

    def __init__(self, search: Search, names: Names, excluded: Callable[[Rule], str]) -> None:
        self.search, self.names, self.database = search, names, search.database
        self.excluded = excluded

    def failure(self, partial: Partial, failure: Failure) -> str:
        """The message for a conjunct of `partial` that does not hold."""
        match failure.how:
            case "fact":
                return self._fact(partial, failure)
            case "false":
                return self._false(partial, failure)
            case _:
                return node_message(self.names, failure)

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
        """The message for a relation that no rule deduced, with a rule that would deduce it."""
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
        text = f"{about}; {would.name} ({place_of(would)}) would deduce it"
        if excluded := self.excluded(would):
            return f"{text}, but is not in the run: {excluded}"
        others = "another rule" if len(rules) == 2 else f"{len(rules) - 1} other rules"
        return text + f" ({others}, too)" * (len(rules) > 1)

    def _engine(self, partial: Partial, failure: Failure) -> str:
        """The message for a fact of a value that is unknown, or has another value."""
        c, key = failure.conjunct, failure.known[0]
        what, name = _WHAT[c.head], self.names.of(key)
        rows = self.database.where(c.head, {0: key})
        needed = failure.known.get(1)
        if not rows:
            unknown = {
                "const-scalar": f"{name} is not one known number",
                "source-index": f"{name} comes from a rule: it is no value of the program",
            }
            return unknown.get(c.head, f"the {what} of {name} is not known")
        there = rows[0][1]
        if needed is None:
            return f"the {what} of {name} is {self.names.of(there)}"
        other = next((m for m in partial.matched if _binds_result_of(m, c)), None)
        if other is not None and isinstance(other.args[0], str):
            twin = self.names.of(partial.values[other.args[0]])
            text = (
                f"the {what} of {name} is {self.names.of(there)},"
                f" that of {twin} is {self.names.of(needed)}"
            )
        else:
            about = "this" if c.head == "const-scalar" else f"the {what} of {name}"
            text = f"{about} is {self.names.of(there)}; needed is {self.names.of(needed)}"
        return text + self._nearness(c.head, there, needed)

    def _nearness(self, head: str, there: Any, needed: Any) -> str:
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
                inputs = sorted(set(self._inputs(key)))
                by = f": it depends on {', '.join(inputs[:3])}" if inputs else ""
                if inputs == [name]:
                    by = ": it is an input"
                return f"{name} is not constant{by}"
            case "has-reciprocal":
                return f"{name} is no constant divisor, or an element of it is 0"
            case _:
                return f"{name} loses more than the tolerance allows"

    def _inputs(self, key: Key) -> Iterator[str]:
        """The names of the inputs on which the first node of a class depends."""
        todo, seen = [key], set[Key]()
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
            condition = {
                "dim-equal": f"{a} == {b}",
                "dim-divides": f"{b} % {a} == 0",
                "dim-ge": f"{a} >= {b}",
            }[c.head]
            if all(isinstance(d, int) for d in args):
                return f"{condition} is false"
            return f"{condition} is not proven; it can be assumed"
        shown = [self.names.of(a) for a in args]
        variables = sorted(v for v in self._below(partial, c) if v in partial.values)
        values = ", ".join(f"{v} = {self.names.of(partial.values[v])}" for v in variables)
        where = f", for {values}" if values else ""
        if c.result is None:
            infix = len(shown) == 2 and not c.head[0].isalpha()
            condition = f" {c.head} ".join(shown) if infix else f"({' '.join((c.head, *shown))})"
            return f"{condition} is false{where}{self._numbers(partial, c)}"
        needed = failure.known.get(len(c.args))
        try:
            result = self.search.computed(c, partial.values)
        except Fails:
            outside = " outside of egglog" * (c.head == "unstable-vec-map")
            return f"this has no value{outside}{where}"
        near = ""
        if isinstance(result, float) and isinstance(needed, float):
            near = off(result, needed)
        return f"this is {self.names.of(result)}; needed is {self.names.of(needed)}{near}{where}"

    def _numbers(self, partial: Partial, c: Conjunct) -> str:
        """The distance of two numbers whose difference fails a comparison, if they are near."""
        for part in partial.plan.conjuncts:
            if part.premise == c.premise and part.head == "-" and c.start < part.start < c.end:
                match [partial.values.get(a) for a in part.args if isinstance(a, str)]:
                    case [float(a), float(b)]:
                        return off(a, b)
                    case _:
                        pass
        return ""

    def _below(self, partial: Partial, c: Conjunct) -> Iterator[str]:
        """The variables of the rule in the text of `c`."""
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
    """The file and line of `rule`: ``rules/idioms.egg:41``."""
    return f"{rule.span.file}:{rule.span.line}"


def off(there: float, needed: float) -> str:
    """The relative difference of two numbers, if they are near."""
    if there == needed or not (math.isfinite(there) and math.isfinite(needed)):
        return ""
    share = abs(there - needed) / max(abs(needed), abs(there))
    return f": near, but off by {share:.2g} of it" if share <= _NEAR else ""


def _broadcast(a: Any, b: Any) -> tuple[Any, ...] | None:
    """The larger of two shapes if the smaller one can be broadcast to it."""
    if not (isinstance(a, tuple) and isinstance(b, tuple)):
        return None
    for small, large in ((a, b), (b, a)):
        tail = large[len(large) - len(small) :]
        fits = len(small) <= len(large) and small != large
        if fits and all(s in (1, e) for s, e in zip(small, tail, strict=True)):
            return large
    return None


def _binds_result_of(matched: Conjunct, c: Conjunct) -> bool:
    """Whether `matched` bound the result variable of `c`, whose own value differs."""
    return matched.head == c.head and matched.result == c.result and isinstance(c.result, str)
