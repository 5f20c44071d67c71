"""Units of a check in this process, or in worker processes that a rule may crash.

egglog cannot be interrupted within an iteration, and aborts if memory runs out.  A unit that does
not end runs again rule by rule, so that only the culprit remains without a verdict.  The verdicts
on the others say so, since a rule by itself has other instances.  Whether a unit ends depends on
the time that it computes, which is much the same however busy the machine is.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from relax_egraph.base.journal import Journal
from relax_egraph.egraph.forks import egglog_works
from relax_egraph.egraph.rulebook.reading import Reading, adopt
from relax_egraph.verify.journaled import JournaledVerdicts
from relax_egraph.verify.library_calls import receive
from relax_egraph.verify.verdict import Verdict
from relax_egraph.verify.work import Unit, Work
from relax_egraph.workers.executor import Executor, ExecutorOf
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits

SECONDS = 120.0
"""The processor time of a unit."""

_WAITING = 10
"""The most time that a unit takes, as a multiple of its processor time: others compute, too."""

_MEMORY = 4 << 30

Done: TypeAlias = tuple[Unit, Sequence[Verdict]]
"""A unit with its verdicts."""

Do: TypeAlias = Callable[[Sequence[Unit]], Iterator[Done]]
"""A function that runs units and yields them with their verdicts, in the order of completion."""


@contextmanager
def workers(work: Work, executor: ExecutorOf | None, journal: Journal | None) -> Generator[Do]:
    """A runner for units of `work`: this process without an `executor`, otherwise its processes.

    If egglog does not work in this process, there is one worker.  The `journal` has the verdicts on
    units that ended.
    """
    known = JournaledVerdicts(journal or Journal(), work)
    if executor is None and egglog_works():
        yield lambda units: ((unit, _whole(known.of(unit, work.do))) for unit in units)
        return
    begin = partial(_begin, replace(work), work.book.reading)
    with (executor or partial(Pool, 1))(begin) as pool:

        def done(unit: Unit) -> Done:
            return unit, _verdicts(known, pool, unit)

        yield lambda units: pool.map(done, units)


def _whole(answer: Sequence[Verdict] | Death) -> Sequence[Verdict]:
    assert not isinstance(answer, Death)
    return answer


def _verdicts(known: JournaledVerdicts, pool: Executor, unit: Unit) -> list[Verdict]:
    """The verdicts of `unit`; the verdict on a rule that crashes its process says so."""
    limits = Limits(_WAITING * SECONDS, _MEMORY, processor=SECONDS)
    answer = known.of(unit, lambda one: pool.run(partial(_do, one), limits))
    if not isinstance(answer, Death):
        return list(answer)
    if len(known.work.rules_of(unit)) == 1:
        return list(known.work.lost(unit, f"its check {_lost(answer)}"))
    cut = f"tried by itself: the check of its group {_lost(answer)}"
    parts = (verdict for part in unit.parts() for verdict in _verdicts(known, pool, part))
    return [replace(verdict, cut=verdict.cut or cut) for verdict in parts]


def _lost(death: Death) -> str:
    match death.cause:
        case "time":
            return f"did not end within {death.reached}"
        case "memory":
            return "ran out of memory"
        case "crash":
            return f"ended the process {death.how}"


_works = list[Work]()


def _begin(work: Work, reading: Reading) -> None:
    """Initialize a worker for units of `work`."""
    adopt(reading)
    receive(work.functions)
    _works[:] = [work]


def _do(unit: Unit) -> tuple[Verdict, ...]:
    return _works[0].do(unit)
