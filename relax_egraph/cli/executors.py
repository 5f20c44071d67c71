"""Where commands run calls: in this process, in worker processes, or on a Ray cluster."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from relax_egraph.base.journal import Journal
from relax_egraph.cli.group import usable
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.pool import Pool


@contextmanager
def executor_of(
    ray_address: str | None, processes: int | None = None
) -> Generator[ExecutorOf | None]:
    """The executor for ``--ray`` and ``--processes``; ``None`` is this process.

    A cluster that is started here has as many cores as there are `processes`, by default all.
    """
    if ray_address is None:
        yield partial(Pool, processes) if processes and processes > 1 else None
        return
    from relax_egraph.ray.cluster import connected
    from relax_egraph.ray.pool import RayPool

    with connected(ray_address, num_cpus=processes):
        yield RayPool


def journal_in(file: Path | None) -> Journal | None:
    """The journal for ``--journal``; a file that is none is a usage error."""
    return None if file is None else usable(lambda: Journal(file))
