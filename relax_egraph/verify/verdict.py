"""Verdicts on rules, with counterexamples, as data and as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from relax_egraph.base import notebook
from relax_egraph.egraph.rulebook.forms import written
from relax_egraph.egraph.rulebook.rule import Direction, FloatClass, Rule
from relax_egraph.errors import Span
from relax_egraph.verify.failures.shown import operands, results
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.values.tolerance import ORDER, Need, kept, ordered


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Operands for which the two sides of a rule differ, or its right side has no value."""

    pattern: Direction
    instance: Instance
    difference: Difference

    def __str__(self) -> str:
        sides = f"left   {self.left}", f"right  {self.right}"
        program = operands(self.pattern, self.instance)
        return "\n".join((*sides, *program, *results(self.difference)))

    @property
    def left(self) -> str:
        """The left side of a rewrite, or the premises of another rule."""
        p = self.pattern
        return written(p.left) if p.left is not None else " ".join(map(written, p.premises))

    @property
    def right(self) -> str:
        """The right side of a rewrite, or the actions of another rule."""
        p = self.pattern
        return written(p.right) if p.right is not None else " ".join(map(written, p.actions))

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON; results are text, since JSON lacks most of these numbers."""
        d = self.difference
        return {
            "left": self.left,
            "right": self.right,
            "program": operands(self.pattern, self.instance),
            "problem": d.problem,
            "at": None if d.at is None else list(d.at),
            "left_value": None if d.left is None or d.at is None else str(d.left[d.at]),
            "right_value": None if d.right is None or d.at is None else str(d.right[d.at]),
        }


Kind: TypeAlias = Literal[
    "exact", "reassociates", "fast", "conditional", "unsound", "never fired", "not checked"
]
"""The class of a rule: the float class that it needs, or the reason for which it has none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking a rule.

    `stated` is the float class in its comment, `needs` the float class that it needs.  The rule
    `fired` on this number of instances, of these `dtypes` and `ranks`.  A rule that needs more than
    it states has a `counterexample`; `reason` says why the rule has not fired, or how it failed.
    If it was not tried `alone`, some instances are programs on which other rules ran, too.

    `ulps` is the largest distance between the rounding errors of the two sides, each relative to
    the same operators in float64, in units in the last place of the largest intermediate number.
    `differs_on` are the kinds of values on which the sides differed.  `guard` is the missing
    premise of a rule that fails only without it.  `proved` tells that both sides have one shape and
    dtype for all sizes, or that an equation of dimensions holds for all of them (`prove`).  A rule
    that is not `checked` calls a function whose meaning is not known.  `cut` says which limit of
    time or memory a part of the check reached; without one, a seed determines the verdict.
    """

    rule: str
    span: Span
    stated: FloatClass
    needs: Need
    fired: int
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    counterexample: Counterexample | None = None
    reason: str = ""
    alone: bool = True
    ulps: float = 0.0
    differs_on: tuple[str, ...] = ()
    guard: str = ""
    proved: bool = False
    checked: bool = True
    cut: str = ""

    @property
    def sound(self) -> bool:
        """Whether the rule fired and needs no more than its stated float class."""
        return self.fired > 0 and ORDER.index(self.needs) <= ORDER.index(kept(self.stated))

    @property
    def kind(self) -> Kind:
        """The class of the rule, whatever its comment states."""
        if self.needs == "unsound":
            return "conditional" if self.guard else "unsound"
        if not self.checked:
            return "not checked"
        return self.needs if self.fired else "never fired"

    @property
    def notable_differences(self) -> tuple[str, ...]:
        """`differs_on` without rounding, unless the rule is ``fast``: others imply it."""
        return tuple(d for d in self.differs_on if d != "rounding" or self.kind == "fast")

    def together(self, other: "Verdict") -> "Verdict":
        """The verdict on the same rule from these instances and those of `other`."""
        worst = max((self, other), key=lambda v: ORDER.index(v.needs))
        return replace(
            worst,
            fired=self.fired + other.fired,
            dtypes=tuple(sorted({*self.dtypes, *other.dtypes})),
            ranks=tuple(sorted({*self.ranks, *other.ranks})),
            counterexample=self.counterexample or other.counterexample,
            reason=worst.reason if worst.needs == "unsound" or not self.fired + other.fired else "",
            alone=self.alone and other.alone,
            ulps=max(self.ulps, other.ulps),
            differs_on=ordered({*self.differs_on, *other.differs_on}),
            proved=self.proved or other.proved,
            cut=self.cut or other.cut,
        )

    def beside(self, other: "Verdict") -> "Verdict":
        """The verdict on a birewrite from those on its directions: the worse of the two."""
        worse = max((self, other), key=lambda v: (not v.sound, ORDER.index(v.needs), -v.fired))
        return replace(
            worse,
            ulps=max(self.ulps, other.ulps),
            differs_on=ordered({*self.differs_on, *other.differs_on}),
            proved=self.proved and other.proved,
            cut=self.cut or other.cut,
        )

    def __str__(self) -> str:
        """One line; for an unsound rule the lines of its counterexample follow."""
        lines = [f"{self.rule} ({self.span}): {self._summary()}"]
        if self.counterexample is not None and not self.sound:
            lines += str(self.counterexample).splitlines()
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        return notebook.verdict(self.kind, str(self), "good" if self.sound else "bad")

    def _summary(self) -> str:
        details = self._details()
        summary = self.kind + (f" ({', '.join(details)})" if details else "")
        if self.kind == "conditional":
            summary = f"conditional: holds if {self.guard}"
        elif self.reason:
            summary += f": {self.reason}"
        elif not self.sound and self.kind != "unsound":
            summary = f"stated {self.stated}, needs {summary}"
        parts = [summary]
        if self.dtypes:
            ranks = ", ".join(map(str, self.ranks))
            parts.append(f"{self.fired} instances of {', '.join(self.dtypes)}, ranks {ranks}")
        if self.proved:
            parts.append(f"{'shapes ' * bool(self.dtypes)}proved for all sizes")
        if self.cut and self.cut != self.reason:
            parts.append(self.cut)
        return "; ".join(parts)

    def _details(self) -> list[str]:
        """The details of a float class: the distance, and the values on which sides differ."""
        if self.kind not in ("reassociates", "fast"):
            return []
        details = [f"≤ {self.ulps:.2g} ulp"] if self.ulps else []
        if self.notable_differences:
            details.append(f"differs on: {', '.join(self.notable_differences)}")
        return details

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON."""
        example = self.counterexample
        return {
            "rule": self.rule,
            "file": self.span.file,
            "line": self.span.line,
            "column": self.span.column,
            "kind": self.kind,
            "stated": self.stated,
            "sound": self.sound,
            "ulps": self.ulps,
            "differs_on": list(self.differs_on),
            "guard": self.guard,
            "proved": self.proved,
            "fired": self.fired,
            "dtypes": list(self.dtypes),
            "ranks": list(self.ranks),
            "alone": self.alone,
            "reason": self.reason,
            "cut": self.cut,
            "counterexample": None if example is None else example.as_dict(),
        }


def weakest(runs: Iterable[Sequence[Verdict]]) -> tuple[Verdict, ...]:
    """The weakest verdict on each rule of several runs, in order: first those that fail."""
    found: dict[str, Verdict] = {}
    for verdict in (verdict for run in runs for verdict in run):
        other = found.setdefault(verdict.rule, verdict)
        found[verdict.rule] = max(other, verdict, key=lambda v: (not v.sound, _rank(v), -v.fired))
    return tuple(found.values())


def _rank(verdict: Verdict) -> int:
    return ORDER.index(verdict.needs)


def silent(rule: Rule, reason: str) -> Verdict:
    """The verdict on a rule that has not fired."""
    return Verdict(rule.name, rule.span, rule.float_class, "exact", 0, reason=reason)
