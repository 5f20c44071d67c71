"""File tests in worker processes, which rules may crash.

egglog cannot be interrupted: a test that exceeds its time limit ends with its process.
"""

from collections.abc import Callable, Sequence
from functools import partial

from relax_egraph.base.interruption import keeping
from relax_egraph.verify.file_tests.cases import Failure, FileTest, Outcome
from relax_egraph.verify.file_tests.run import run_test
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits

_MEMORY = 2 << 30


def run_tests(
    tests: Sequence[FileTest],
    *,
    seconds: float = 60.0,
    processes: int = 1,
    progress: Callable[[Outcome], object] = lambda _: None,
) -> tuple[Outcome, ...]:
    """The outcomes of `tests`, in order; `progress` is called with each as soon as it is ready.

    A test that exceeds the limit of `seconds` or of memory fails.  An interruption raises
    `Interrupted` with the outcomes so far.
    """
    limits = Limits(seconds, _MEMORY)
    outcomes: dict[int, Outcome] = {}

    def in_order() -> tuple[Outcome, ...]:
        return tuple(outcomes[number] for number in sorted(outcomes))

    def so_far() -> tuple[str, tuple[Outcome, ...]]:
        return f"{len(outcomes)} of {len(tests)} cases were run", in_order()

    size = max(1, min(processes, len(tests)))
    with keeping(so_far), Pool(size, _begin) as pool:
        for number, outcome in pool.map(partial(_outcome, pool, limits), enumerate(tests)):
            outcomes[number] = outcome
            progress(outcome)
    return in_order()


def _begin() -> None:
    """Initialize a worker: to import this module is enough."""


def _outcome(pool: Pool, limits: Limits, numbered: tuple[int, FileTest]) -> tuple[int, Outcome]:
    number, test = numbered
    try:
        answer = pool.run(partial(run_test, test), limits)
    except Exception as problem:  # of one test: the others go on
        reason = f"{type(problem).__name__}: {problem}"
    else:
        if isinstance(answer, Outcome):
            return number, answer
        reason = _reason(answer)
    return number, Outcome(test, (Failure(test.line, "a run that ends", (reason,)),))


def _reason(death: Death) -> str:
    match death.cause:
        case "time":
            return f"it did not end within {death.limits.seconds:g} s"
        case "memory":
            return f"it ran out of its {_MEMORY / (1 << 30):g} GiB of memory"
        case "crash":
            return f"it ended {death.how}"
