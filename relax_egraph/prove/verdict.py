"""The verdict on a rule."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from relax_egraph.base import notebook
from relax_egraph.egraph.rulebook.rule import Rule

Status: TypeAlias = Literal["proven", "refuted", "not proven", "not expressible"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is proven of a rule.

    A `reason` says which step is missing, or what the counterexample is; a proof may have come to a
    case in which the sides differ (`differs`).  `ranks` are those of its operands in the general
    instances, of which there were `forms`; `queries` are questions to the solver.  A proof rests on
    the stated `meanings` of relations.
    """

    rule: Rule
    status: Status
    reason: str = ""
    ranks: tuple[int, ...] = ()
    forms: int = 0
    queries: int = 0
    seconds: float = 0.0
    differs: bool = False
    meanings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON output."""
        return {
            "name": self.rule.name,
            "status": self.status,
            "reason": self.reason,
            "family": self.rule.ruleset,
            "ranks": list(self.ranks),
            "forms": self.forms,
            "queries": self.queries,
            "meanings": list(self.meanings),
            "cpu_seconds": round(self.seconds, 4),
        }

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        if self.status == "proven":
            ranks = ", ".join(map(str, self.ranks)) or "0"
            reason = f" for all extents, operands of the ranks {ranks}{self._by}"
        return f"{self.rule.name}: {self.status}{reason}"

    def _repr_html_(self) -> str:
        look = {"proven": "good", "refuted": "bad"}.get(self.status, "open")
        return notebook.verdict(self.status, str(self), look)

    @property
    def _by(self) -> str:
        """The meanings on which a proof rests."""
        if not self.meanings:
            return ""
        *others, last = self.meanings
        named = f"{', '.join(others)} and {last}" if others else last
        return f", by the meaning{'s' if others else ''} of {named}"
