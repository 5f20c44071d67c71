"""What was found of a rule, as data and as text."""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from relax_egraph.egraph.rulebook.forms import written
from relax_egraph.egraph.rulebook.rule import Direction, FloatClass, Rule
from relax_egraph.errors import Span
from relax_egraph.verify.failures.shown import operands, results
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.values.tolerance import ORDER, Need, kept, ordered


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Operands for which the two sides of a rule differ, or the second has no value."""

    pattern: Direction
    instance: Instance
    difference: Difference

    def __str__(self) -> str:
        sides = f"left   {self.left}", f"right  {self.right}"
        given = operands(self.pattern, self.instance)
        return "\n".join((*sides, *given, *results(self.difference)))

    @property
    def left(self) -> str:
        """What the rule matches, but for premises of a rewrite."""
        p = self.pattern
        return written(p.left) if p.left is not None else " ".join(map(written, p.premises))

    @property
    def right(self) -> str:
        """What it makes of that."""
        p = self.pattern
        return written(p.right) if p.right is not None else " ".join(map(written, p.actions))

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON; results as text, as most of them are no numbers of JSON."""
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


Kind: TypeAlias = Literal["exact", "reassociates", "fast", "conditional", "unsound", "never fired"]
"""What a rule is found to be: the float class that it needs, or why it has none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a rule.

    `stated` is the float class that its comment states and `needs` the one that it needs.  It has
    `fired` on so many instances, of these `dtypes` and `ranks`.  `counterexample` is there if it
    needs more than is stated; `reason` says why it has not fired, or how it failed.  It was tried
    `alone`, or else some instances are programs on which others ran, too.

    `ulps` is by how much the errors of the two sides were apart at most, each being what rounding
    makes of the value that the same operators have in float64; in units in the last place of the
    result's dtype at the largest number on the way to it.  `differs_on` are the kinds of values on
    which the sides were seen to differ.  `guard` is the premise that is missing, if the rule fails
    only without it.  It is `proved` if both sides were shown to have one shape and dtype for all
    sizes, or if it equates dimensions and is true of all of them (`prove`).
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

    @property
    def sound(self) -> bool:
        """Whether it fired, and keeps to the class that is stated; unstated is exact."""
        return self.fired > 0 and ORDER.index(self.needs) <= ORDER.index(kept(self.stated))

    @property
    def kind(self) -> Kind:
        """What the rule is, whatever it states."""
        if self.needs == "unsound":
            return "conditional" if self.guard else "unsound"
        return self.needs if self.fired else "never fired"

    @property
    def told_on(self) -> tuple[str, ...]:
        """`differs_on` but for what its kind says: that of rules that reassociate is rounding."""
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
        )

    def beside(self, other: "Verdict") -> "Verdict":
        """The verdict on both directions of a rule, of which this is one: the worse of the two."""
        worse = max((self, other), key=lambda v: (not v.sound, ORDER.index(v.needs), -v.fired))
        return replace(
            worse,
            ulps=max(self.ulps, other.ulps),
            differs_on=ordered({*self.differs_on, *other.differs_on}),
            proved=self.proved and other.proved,
        )

    def __str__(self) -> str:
        """One line on a rule that is sound; on another one also what it is wrong for."""
        lines = [f"{self.rule} ({self.span}): {self._found()}"]
        if self.counterexample is not None and not self.sound:
            lines += str(self.counterexample).splitlines()
        return "\n  ".join(lines)

    def _found(self) -> str:
        found = self.kind + (f" ({', '.join(self._how())})" if self._how() else "")
        if self.kind == "conditional":
            found = f"conditional: holds if {self.guard}"
        elif self.reason:
            found += f": {self.reason}"
        elif not self.sound and self.kind != "unsound":
            found = f"stated {self.stated}, needs {found}"
        parts = [found]
        if self.dtypes:
            ranks = ", ".join(map(str, self.ranks))
            parts.append(f"{self.fired} instances of {', '.join(self.dtypes)}, ranks {ranks}")
        if self.proved:
            parts.append(f"{'shapes ' * bool(self.dtypes)}proved for all sizes")
        return "; ".join(parts)

    def _how(self) -> list[str]:
        """What is said in parentheses of the class that the rule needs."""
        if self.kind not in ("reassociates", "fast"):
            return []
        some = [f"≤ {self.ulps:.2g} ulp"] if self.ulps else []
        return some + ([f"differs on: {', '.join(self.told_on)}"] if self.told_on else [])

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
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
            "counterexample": None if example is None else example.as_dict(),
        }


def silent(rule: Rule, reason: str) -> Verdict:
    """The verdict on a rule that has not fired."""
    return Verdict(rule.name, rule.span, rule.float_class, "exact", 0, reason=reason)
