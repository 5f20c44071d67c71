"""The door to z3: whether conditions can hold together, and a record of what was asked."""

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, TypeAlias

Answer: TypeAlias = Literal["impossible", "possible", "unknown"]


@lru_cache(1)
def z3() -> Any:
    """The module z3; raises ``ModuleNotFoundError`` with the way to install it."""
    try:
        return import_module("z3")
    except ModuleNotFoundError:
        message = "proofs need z3: pip install relax-egraph[prove]"
        raise ModuleNotFoundError(message, name="z3") from None


@dataclass(frozen=True, slots=True)
class Instance:
    """A general instance: its operands, what is assumed of extents, how sums were matched."""

    operands: dict[str, str]
    assumed: tuple[str, ...]
    bijections: tuple[str, ...]


@dataclass(slots=True)
class Record:
    """What a proof rests on: its instances, and what the solver found impossible, as SMT-LIB."""

    instances: list[Instance] = field(default_factory=list[Instance])
    questions: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, other: "Record") -> None:
        """Add what another proof rests on."""
        self.instances += other.instances
        self.questions |= other.questions

    def become(self, other: "Record") -> None:
        """Have what another record has, instead of what this one has."""
        self.clear()
        self.add(other)

    def clear(self) -> None:
        """Forget what an attempt recorded that came to no end."""
        self.instances.clear()
        self.questions.clear()


_RECORD: ContextVar[Record | None] = ContextVar("record", default=None)


@contextmanager
def recording() -> Generator[Record]:
    """Record what is asked; around it, nothing is."""
    record = Record()
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def recorded() -> Record | None:
    """The record of what is proven now, if one is kept."""
    return _RECORD.get()


def ask(terms: Iterable[Any], steps: int) -> Answer:
    """Whether all `terms` of z3 can hold, by so many of its `steps`."""
    solver = _solver(steps)
    solver.add(*terms)
    found = _answer(solver.check())
    record = recorded()
    if found == "impossible" and record is not None:
        record.questions[_readable(solver.to_smt2())] = None
    return found


def _readable(question: str) -> str:
    """SMT-LIB as solvers read it: z3 writes bars and first digits in names that none accepts."""
    return _NUMBERED.sub(r"n\1", question.replace("\\|", "!bar!"))


_NUMBERED = re.compile(r"(?<=[\s(])(\d+[A-Za-z_])")
"""The beginning of a name, at a digit."""


def answer(question: str, steps: int) -> Answer:
    """What z3 says of SMT-LIB text, by so many of its steps."""
    solver = _solver(steps)
    solver.from_string(question)
    return _answer(solver.check())


def _solver(steps: int) -> Any:
    """A solver that gives up after `steps`.

    An interruption is Python's: z3 would take it for the end of its steps, and the proof would go
    on without an answer.
    """
    solver = z3().SimpleSolver()
    solver.set("rlimit", steps)
    solver.set("ctrl_c", False)
    return solver


def _answer(found: Any) -> Answer:
    if found == z3().unsat:
        return "impossible"
    return "possible" if found == z3().sat else "unknown"
