"""The result of a bisection, as data and as text."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from relax_egraph.base import notebook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.reasons.difference import Difference
from relax_egraph.verify.verdict import Verdict

By: TypeAlias = Literal["reference", "machine"]
"""The runner of the programs: the numpy reference, or this machine with compiled programs."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception in place of a result."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


Failure: TypeAlias = Difference | Raised


@dataclass(frozen=True, slots=True)
class Culprit:
    """A rule of a minimal failing set, with the verdict of `check_rules` on the rule alone."""

    rule: Rule
    verdict: Verdict

    @property
    def finding(self) -> str:
        """A phrase: the rule is unsound by itself, or it only exposes the error of another."""
        match self.verdict:
            case Verdict(fired=0, reason=reason):
                return f"not tried by itself: {reason}"
            case Verdict(sound=True, needs="exact"):
                return "exact by itself: it only exposes what others do"
            case Verdict(sound=True, needs=needs):
                return f"sound by itself ({needs})"
            case Verdict(guard=guard) if guard:
                return f"unsound by itself, but where {guard}"
            case Verdict(needs="unsound"):
                return "unsound by itself"
            case Verdict(stated=stated, needs=needs):
                return f"stated {stated}, it is {needs} by itself"

    @property
    def is_unsound(self) -> bool:
        """Whether the check of the rule alone refuted it."""
        return self.verdict.fired > 0 and not self.verdict.sound

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        rule = self.rule
        fields = {"law": rule.law, "float_class": rule.float_class, "place": str(rule.span)}
        verdict = {"sound": self.verdict.sound, "verdict": str(self.verdict), "said": self.finding}
        return {"rule": rule.name, **fields, **verdict}


@dataclass(frozen=True, slots=True)
class Bisected:
    """Minimal `sets` of rules that make a program fail.

    `failure` is the outcome with all rules: the largest difference from the program as written, or
    an exception.  `exceeds` tells whether it is a failure indeed: an exception, or a difference
    above the tolerance.  If it is and there are no sets, the program fails without any rule.

    Without the rules of `remedy` (the option ``without`` of `optimize`) the result is right: they
    are the unsound rules, or else the rules of all sets.  It is empty if that does not help.

    `by` is the runner: the reference if it shows the failure, else the machine.  `rounding` is the
    distance of the program as written from its results in float64, if it has such.  `candidates`
    are the rules that matched; of the `tries`, `unresolved` ones failed in another way.
    """

    sets: tuple[tuple[Culprit, ...], ...]
    failure: Failure
    exceeds: bool
    remedy: tuple[str, ...]
    by: By
    rounding: float | None
    candidates: tuple[str, ...]
    tries: int
    unresolved: int
    seconds: float

    @property
    def summary(self) -> str:
        """The failure, the remedy, and the number of tries."""
        how = f"{len(self.candidates)} rules matched, {self.tries} tries, {self.seconds:.1f} s"
        if not self.exceeds:
            return f"nothing to find: {self.failure} ({how})"
        if not self.sets:
            return f"no rule is to blame, it fails without any: {self.failure} ({how})"
        right = (
            f"right without {', '.join(self.remedy)}" if self.remedy else "wrong without them, too"
        )
        return f"{self.failure}\n{right} ({how})"

    def __str__(self) -> str:
        culprits = [c for one in self.sets for c in one]
        lines = (f"{c.rule.name} ({c.rule.span}): {c.finding}" for c in culprits)
        return "\n".join((*lines, self.summary))

    def _repr_html_(self) -> str:
        return notebook.text(str(self))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "exceeds": self.exceeds,
            "failure": str(self.failure),
            "sets": [[culprit.as_dict() for culprit in culprits] for culprits in self.sets],
            "remedy": list(self.remedy),
            "by": self.by,
            "rounding": self.rounding,
            "candidates": list(self.candidates),
            "tries": self.tries,
            "unresolved": self.unresolved,
            "seconds": self.seconds,
        }
