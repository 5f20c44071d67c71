"""A cache of e-graphs with declared vocabulary and rules: a declaration costs egglog 0.2 ms.

Each thread has its own cache, as an `EGraph` belongs to the thread that created it.
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
"""The most e-graphs in the cache of a thread."""

_GROWTH, _SPARE = 1.25, 100
"""The most forms of an e-graph, relative to its program: a factor, and a number in addition.

A run copies its e-graph, which takes a tenth of the time of its declarations.
"""

_threads = local()


@dataclass(frozen=True)
class Program:
    """The declarations of an e-graph: `forms`, one by one, then the combined `rulesets`.

    Forms have the same meaning in all programs of one `vocabulary`, so that several programs can
    share an e-graph.  For that, each rule is in its own ruleset and has no effect by itself;
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
        """The forms as a set."""
        return frozenset(self.forms)


@dataclass(slots=True)
class _Kept:
    """An e-graph, and the forms that are declared in it."""

    vocabulary: Hashable
    egraph: EGraph
    declared: frozenset[str] = frozenset()

    def declare(self, program: Program) -> None:
        """Run the forms of `program` that are not declared yet."""
        for form in program.forms:
            if form not in self.declared:
                run_text(self.egraph, form)
        self.declared |= program.needed


@contextmanager
def prepared(program: Program) -> Generator[EGraph]:
    """An e-graph with the declarations of `program`, for use within the ``with`` only.

    It may have further empty tables, and further rules outside of the program's rulesets.  After an
    exception other than `RuleError` it does not return to the cache.
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
    """The e-graph that lacks the fewest forms of `program`, and will not be too large."""
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
    """Leak the cache in a child of ``fork``, where freeing an e-graph never returns (`forks`)."""
    kept = _threads.__dict__.pop("kept", None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leak)
