"""Certificates checked again, without the prover: each question, by z3 and by a second solver."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relax_egraph.prove import questions, second
from relax_egraph.prove.certificate import Certificate

STEPS = 5_000_000
"""The steps for one question, in the measure of each solver."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """How many of the questions of a proof each solver finds impossible, too; or possible."""

    questions: int
    impossible: Mapping[str, int]
    possible: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether no solver denies a question."""
        return not any(self.possible.values())

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON output."""
        found = {"impossible": {**self.impossible}, "possible": {**self.possible}}
        return {"questions": self.questions, **found}

    def __str__(self) -> str:
        each = [f"{solver} confirms {count}" for solver, count in self.impossible.items()]
        each += [f"{solver} denies {count}" for solver, count in self.possible.items() if count]
        return f"of {self.questions} questions, {', '.join(each)}"


def recheck(certificate: Certificate) -> Recheck:
    """Ask each question of a certificate again, of each solver that is installed."""
    solvers = {"z3": questions.answer}
    if second.cvc5() is not None:
        solvers["cvc5"] = second.answer
    answers = {
        name: [answer(question, STEPS) for question in certificate.questions]
        for name, answer in solvers.items()
    }
    return Recheck(
        len(certificate.questions),
        {name: found.count("impossible") for name, found in answers.items()},
        {name: found.count("possible") for name, found in answers.items()},
    )
