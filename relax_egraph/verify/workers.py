"""Units of a check in this process, or in worker processes that a rule may crash.

egglog cannot be interrupted within an iteration, and aborts if memory runs out.  A unit that does
not end runs again rule by rule, so that only the culprit remains without a verdict.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

from relax_egraph.egraph.forks import egglog_works
from relax_egraph.egraph.rulebook.reading import Reading, adopt
from relax_egraph.verify.library_calls import receive
from relax_egraph.verify.verdict import Verdict
from relax_egraph.verify.work import Unit, Work
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits

SECONDS = 120.0
"""The time limit of a unit."""

_MEMORY = 4 << 30

Do: TypeAlias = Callable[[Sequence[Unit]], Iterator[Verdict]]
"""A function that runs units and yields their verdicts in the order of completion."""


@contextmanager
def workers(work: Work, processes: int = 1) -> Generator[Do]:
    """A runner for units of `work`: this process if `processes` is 1, otherwise workers.

    If egglog does not work in this process, there is one worker.
    """
    if processes <= 1 and egglog_works():
        yield lambda units: chain.from_iterable(map(work.do, units))
        return
    begin = partial(_begin, replace(work), work.book.reading)
    with Pool(max(1, processes), begin) as pool:
        yield lambda units: chain.from_iterable(pool.map(partial(_verdicts, work, pool), units))


def _verdicts(work: Work, pool: Pool, unit: Unit) -> list[Verdict]:
    """The verdicts of `unit`; the verdict on a rule that crashes its process says so."""
    answer = pool.run(partial(_do, unit), Limits(SECONDS, _MEMORY))
    if not isinstance(answer, Death):
        return list(answer)
    if len(work.rules_of(unit)) == 1:
        return list(work.lost(unit, _lost(answer)))
    return [verdict for part in unit.parts() for verdict in _verdicts(work, pool, part)]


def _lost(death: Death) -> str:
    match death.cause:
        case "time":
            return f"its check did not end within {death.limits.seconds:g} s"
        case "memory":
            return "its check ran out of memory"
        case "crash":
            return f"its check ended the process {death.how}"


_works = list[Work]()


def _begin(work: Work, reading: Reading) -> None:
    """Initialize a worker for units of `work`."""
    adopt(reading)
    receive(work.functions)
    _works[:] = [work]


def _do(unit: Unit) -> tuple[Verdict, ...]:
    return _works[0].do(unit)
