"""Verdicts on units of a check in a journal.

A verdict with a counterexample is not kept: its operands and values are no plain data.  The run
that goes on computes it again, the same one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from relax_egraph import rules
from relax_egraph.base.journal import Journal
from relax_egraph.base.run_input import VERSIONS, RunInput
from relax_egraph.base.sources import digest_of_code
from relax_egraph.verify.verdict import Verdict
from relax_egraph.verify.work import Unit, Work
from relax_egraph.workers.process import Death

_LIBRARIES = ("egglog", "numpy", "sympy")

_DERIVED = ("span", "stated", "counterexample")
"""The fields of a verdict that its rule has, or that are not kept."""

_PLAIN = [f.name for f in fields(Verdict) if f.name not in _DERIVED]
_TUPLES = ("dtypes", "ranks", "differs_on")


@dataclass(frozen=True)
class JournaledVerdicts:
    """The verdicts on units of `work`, as far as a journal has them."""

    journal: Journal
    work: Work

    def require_input(self, seeds: Iterable[int]) -> None:
        """Raise ``ValueError`` if the journal is of a check of other rules, or with other seeds."""
        parts = {VERSIONS: _versions(), "rules, programs or --trials": self._input}
        RunInput("check", parts, "seeds", [*map(str, seeds)]).require_in(self.journal)

    def of(
        self, unit: Unit, check: Callable[[Unit], tuple[Verdict, ...] | Death]
    ) -> tuple[Verdict, ...] | Death:
        """The verdicts on `unit` that are known, or else those of `check`, which are kept.

        A death is not kept: another run may have more time or memory.
        """
        question = ["check", self._input, _data_of_unit(unit)]
        if (known := self.journal.get(question)) is not None:
            return tuple(map(self._verdict, known))
        found = check(unit)
        if not isinstance(found, Death) and all(v.counterexample is None for v in found):
            self.journal.put(question, list(map(_data, found)))
        return found

    @cached_property
    def _input(self) -> str:
        """A digest of all that verdicts depend on besides the unit."""
        book = self.work.book
        parts = (
            *_versions(),
            *(rules.text(family) for family in (*rules.FACTS, *book.families)),
            *(f"{source.name}\n{source.text}" for source in book.user),
            f"{sorted(book.without)} {book.fast_math} {sorted(book.absent)} {book.bounded}",
            *(
                f"{c.forms} {c.families} {sorted(c.fires)} {c.simple} {sorted(c.floats)}"
                for c in self.work.cases
            ),
            f"{self.work.trials} trials",
        )
        hashed = sha256()
        for part in parts:
            hashed.update(f"{len(part)} {part}".encode())
        return hashed.hexdigest()

    def _verdict(self, data: Mapping[str, Any]) -> Verdict:
        """The verdict of which `_data` are these."""
        rule = self.work.rules[data["rule"]]
        known: dict[str, Any] = {**data} | {name: tuple(data[name]) for name in _TUPLES}
        return Verdict(**known, span=rule.span, stated=rule.float_class)


def _versions() -> tuple[str, ...]:
    return digest_of_code(), *(f"{name} {version(name)}" for name in _LIBRARIES)


def not_kept(work: Work) -> str:
    """The rules of `work` whose verdicts no journal can keep, in words; empty if there are none."""
    book = work.book
    if work.functions or any(source.functions for source in book.user):
        return "rules that call Python functions"
    return "rules with operators of your own" if book.operators.own else ""


def _data_of_unit(unit: Unit) -> list[Any]:
    known = [(_data(v), str(v.counterexample or "")) for v in unit.known]
    return [unit.stage, unit.subject, unit.chains, known, sorted(unit.doubted), unit.seed]


def _data(verdict: Verdict) -> dict[str, Any]:
    """The fields of a verdict that its rule does not have, as plain data."""
    return {name: getattr(verdict, name) for name in _PLAIN}
