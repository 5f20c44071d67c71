"""E-graphs with vocabulary and rules, kept for the next run: to declare a rule costs egglog 0.2 ms.

An `EGraph` belongs to the thread that made it.
"""

import ctypes
import os
from collections.abc import Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import local

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.forks import new_egraph
from relax_egraph.errors import RuleError

_KEPT = 4
"""So many e-graphs are kept by each thread."""

_GROWTH, _SPARE = 1.25, 100
"""How many times the forms of a program, and how many more, its e-graph may have: to copy an
e-graph takes a tenth of the time of declaring it."""

_threads = local()


@dataclass(frozen=True)
class Program:
    """What makes an e-graph out of an empty one: `forms` one by one, then the `rulesets`.

    Programs of one `vocabulary` agree on what a form is: each may run where those of another are
    declared, too.  So forms add rules to rulesets of their own, and do nothing by themselves;
    `rulesets` combine them.
    """

    vocabulary: Hashable
    forms: Sequence[str]
    rulesets: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The whole program, in order."""
        return (*self.forms, self.rulesets)

    @cached_property
    def needed(self) -> frozenset[str]:
        """The forms, in no order."""
        return frozenset(self.forms)


@dataclass(slots=True)
class _Kept:
    """An e-graph, and what has been declared in it."""

    vocabulary: Hashable
    egraph: EGraph
    declared: frozenset[str] = frozenset()

    def declare(self, program: Program) -> None:
        """Run those forms of `program` that have not been run."""
        for form in program.forms:
            if form not in self.declared:
                run_text(self.egraph, form)
        self.declared |= program.needed


@contextmanager
def prepared(program: Program) -> Generator[EGraph]:
    """An e-graph on which `program` has been run, for use within the ``with`` only.

    It may have more tables, all of them empty, and more rules, in none of the program's rulesets.
    One that an exception leaves is not kept, unless it is a `RuleError`.
    """
    every: list[_Kept] = _threads.__dict__.setdefault("kept", [])
    kept = _closest(program, every)
    if kept:
        every.remove(kept)
    else:
        kept = _Kept(program.vocabulary, new_egraph())
    kept.declare(program)
    run_text(kept.egraph, f"(push) {program.rulesets}")
    refused: RuleError | None = None
    try:
        yield kept.egraph
    except RuleError as problem:
        refused = problem
    run_text(kept.egraph, "(pop)")
    every.append(kept)
    del every[:-_KEPT]
    if refused:
        raise refused


def _closest(program: Program, every: Sequence[_Kept]) -> _Kept | None:
    """Which of `every` e-graph lacks the fewest forms of `program`, and will not be too large."""
    most = _GROWTH * len(program.needed) + _SPARE
    lacking = {
        k: len(program.needed - kept.declared)
        for k, kept in enumerate(every)
        if kept.vocabulary == program.vocabulary
    }
    fitting = [k for k, count in lacking.items() if len(every[k].declared) + count <= most]
    best = min(fitting, key=lambda k: (lacking[k], len(every[k].declared)), default=None)
    return None if best is None else every[best]


def _leak() -> None:
    """In a child of ``fork``: to let an e-graph go is to wait for ever (see `forks`)."""
    kept = _threads.__dict__.pop("kept", None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leak)
