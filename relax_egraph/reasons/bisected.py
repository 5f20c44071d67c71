"""What a bisection of a result found, as data and as text."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.reasons.difference import Difference
from relax_egraph.verify.verdict import Verdict

By: TypeAlias = Literal["reference", "machine"]
"""What ran the programs: the numpy reference, or this machine what was built for it."""


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
    """A rule without which the others of its set do no harm, and what is found of it alone."""

    rule: Rule
    verdict: Verdict

    @property
    def said(self) -> str:
        """Whether the rule is to blame, or only exposes what another does."""
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
        """Whether it was seen to break what it states, alone."""
        return self.verdict.fired > 0 and not self.verdict.sound

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        rule = self.rule
        fields = {"law": rule.law, "float_class": rule.float_class, "place": str(rule.span)}
        verdict = {"sound": self.verdict.sound, "verdict": str(self.verdict), "said": self.said}
        return {"rule": rule.name, **fields, **verdict}


@dataclass(frozen=True, slots=True)
class Bisected:
    """The `sets` of rules that make a program fail: within each every rule is needed for that.

    With all rules there is the `failure`: the largest difference to the program as written, or what
    was raised; `exceeds` tells whether the difference is more than what is allowed.  If it is and
    there are no sets, the program fails without any rule.

    The `remedy` are rules to leave out, as ``without`` of `optimize`, for the result to be right:
    those that are unsound by themselves, or else those of all sets; none if that is not enough.

    The programs were run `by` the reference where that shows the failure, else by the machine.
    `rounding` is how far the program as written is from its meaning in float64, if it has one.
    Of `candidates`, rules that matched, there were `tries`, `unresolved` if they failed otherwise.
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
        """What was found, but for the rules, and how."""
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
        culprits = [c for found in self.sets for c in found]
        lines = (f"{c.rule.name} ({c.rule.span}): {c.said}" for c in culprits)
        return "\n".join((*lines, self.summary))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "exceeds": self.exceeds,
            "failure": str(self.failure),
            "sets": [[culprit.as_dict() for culprit in found] for found in self.sets],
            "remedy": list(self.remedy),
            "by": self.by,
            "rounding": self.rounding,
            "candidates": list(self.candidates),
            "tries": self.tries,
            "unresolved": self.unresolved,
            "seconds": self.seconds,
        }
