"""Runs the cases of a suite, each a task: a crash or a timeout is the outcome of its case."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from relax_egraph.base.journal import Journal
from relax_egraph.base.run_input import VERSIONS, RunInput
from relax_egraph.base.sources import digest_of_code
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits
from relax_egraph.workers.tasks import Task, answers

TIME_LIMIT = 120.0
"""The seconds that a case may take, if nothing else is said."""

Case = TypeVar("Case")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Suite(Generic[Case, Outcome]):
    """What is done with the cases of a suite in the module `module`, which processes import first.

    The cases, `run` and `data` pickle, functions by their names.  `run` returns the outcome of a
    case, which becomes JSON by `data`, and is read from that by `outcome`.  `lost` is the outcome
    of a case whose process died, or that takes more than `limit` seconds: it gets the reason.
    `name` names a case.  Outcomes depend on `libraries`, and on `options`, which are JSON.
    """

    module: str
    name: Callable[[Case], str]
    run: Callable[[Case], Outcome]
    lost: Callable[[Case, str], Outcome]
    failed: Callable[[Outcome], bool]
    data: Callable[[Outcome], Any]
    outcome: Callable[[Any], Outcome]
    libraries: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limit: float = TIME_LIMIT


def outcomes(
    suite: Suite[Case, Outcome],
    cases: Sequence[Case],
    executor: ExecutorOf | None = None,
    journal: Journal | None = None,
) -> list[Outcome]:
    """What the suite's `run` returns of each of `cases`, in order.

    They run in the processes of `executor`, by default in one.  Those in the `journal` do not run
    again, but those that were lost.  Standard error shows how many are done, and how many of those
    failed.  An interruption ends the run with the outcomes so far.  Raises ``ValueError`` for a
    journal of another suite, or of other versions or options.
    """
    parts = {VERSIONS: _versions(suite.libraries), "options": suite.options}
    RunInput(suite.module, parts, "cases", [*map(suite.name, cases)]).require_in(journal)
    tasks = [
        Task(["case", suite.module, parts, suite.name(case)], _call(suite, case), number)
        for number, case in enumerate(cases)
    ]
    found: dict[int, Outcome] = {}
    begin = partial(_begin, suite.module)
    how = executor or partial(Pool, 1), journal, Limits(suite.limit), begin
    with _progress(len(cases)) as ended, closing(answers(tasks, *how)) as every:
        try:
            for task, answer in every:
                number = task.subject
                found[number] = (
                    suite.lost(cases[number], f"its process {answer}")
                    if isinstance(answer, Death)
                    else suite.outcome(answer)
                )
                ended(suite.failed(found[number]))
        except KeyboardInterrupt:
            print(f"interrupted: {len(found)} of {len(cases)} cases ran", file=sys.stderr)
    return [found[number] for number in sorted(found)]


def _call(suite: Suite[Case, Any], case: Case) -> Callable[[], Any]:
    return partial(_data, suite.run, suite.data, case)


def _data(run: Callable[[Any], Any], data: Callable[[Any], Any], case: Any) -> Any:
    return data(run(case))


def _begin(module: str) -> None:
    import_module(module)


def _versions(libraries: Sequence[str]) -> list[str]:
    """The versions of all that outcomes depend on: the sources of the package and of `bench`."""
    hashed = sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        hashed.update(file.read_bytes())
    return [digest_of_code(), hashed.hexdigest(), *map(_version, libraries)]


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return f"no {library}"


_NOTED = 20
"""How many lines of progress there are where standard error is not a terminal."""


@contextmanager
def _progress(total: int) -> Generator[Callable[[bool], None]]:
    """Show a bar; the yielded function is called at the end of each case: whether it failed."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    done = failures = 0
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("0 failed", total=total)

        def ended(is_failure: bool) -> None:
            nonlocal done, failures
            done, failures = done + 1, failures + is_failure
            progress.update(task, advance=1, description=f"{failures} failed")
            if not console.is_terminal and done * _NOTED // total > (done - 1) * _NOTED // total:
                console.print(f"{done} of {total} cases, {failures} failed")

        yield ended
