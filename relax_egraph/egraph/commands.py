"""Running egglog commands, with its panics and errors as ours.

An `EGraph` belongs to the thread that made it.
"""

import ctypes
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

from egglog.bindings import EggSmolError, EGraph

from relax_egraph.egraph.home import new_egraph
from relax_egraph.errors import RuleError, SaturationError

Command = Any
"""A parsed egglog command; the bindings give the union of them no name."""

_KEPT = 4
_threads = local()


def run(egraph: EGraph, commands: Iterable[Command]) -> list[Any]:
    """Run parsed commands and return their outputs.

    What egglog refuses, and what it panics at, is a `SaturationError`.  An exception of a Python
    function that a rule calls passes through.
    """
    try:
        return egraph.run_program(*commands)
    except EggSmolError as problem:
        raise SaturationError(f"egglog: {problem.context}") from None
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise SaturationError(f"egglog panicked: {problem}") from None


def run_text(egraph: EGraph, text: str) -> list[Any]:
    """Parse and run a short `text`: parsing takes memory quadratic in its length."""
    return run(egraph, egraph.parse_program(text))


@contextmanager
def prepared(texts: Sequence[str]) -> Generator[EGraph]:
    """An e-graph on which `texts` have been run, one by one, for use within the ``with`` only.

    Each thread keeps the last few: pushing and popping is ten times faster than declaring a
    rule book anew.  One that an exception leaves is not kept, unless it is a `RuleError`.
    """
    kept: dict[int, tuple[Sequence[str], EGraph]] = _threads.__dict__.setdefault("kept", {})
    _, egraph = kept.pop(id(texts), (texts, None))
    if egraph is None:
        egraph = new_egraph()
        for text in texts:
            run_text(egraph, text)
    run_text(egraph, "(push)")
    refused: RuleError | None = None
    try:
        yield egraph
    except RuleError as problem:
        refused = problem
    run_text(egraph, "(pop)")
    kept[id(texts)] = (texts, egraph)
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]
    if refused:
        raise refused


def _leak() -> None:
    """In a child of ``fork``: to let an e-graph go is to wait for ever (see `home`)."""
    kept = _threads.__dict__.pop("kept", None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leak)
