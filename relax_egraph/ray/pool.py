"""Calls within limits on the machines of a Ray cluster.

Each call is a Ray task, which runs it in a worker process of its own machine, beside the process of
Ray: a call that takes too much brings down that worker alone.  Ray repeats a task whose process, or
machine, is lost.
"""

import pickle
from collections.abc import Callable
from concurrent.futures import CancelledError
from platform import node
from threading import Lock
from typing import Any, TypeVar, cast
from uuid import uuid4

from relax_egraph.base.forks import free_in_forks
from relax_egraph.base.sources import digest_of_code
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ray.cluster import ray_module
from relax_egraph.workers.executor import Executor
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits

T = TypeVar("T")

RETRIES = 5
"""How often Ray repeats a call whose process or machine is lost."""

_WAITING = 4
"""Calls that are sent for each core, so that none is idle and a cluster that can grow does."""


class RayPool(Executor):
    """The processes of the cluster that this process is connected to; each begins with `begin`.

    The machines must have the same sources of this package: `run` raises `RelaxEgraphError`
    otherwise, and if a call is lost with its process again and again.
    """

    def __init__(self, begin: Callable[[], object] | None = None) -> None:
        ray = ray_module()

        self.cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.size = _WAITING * self.cores
        self._closed = False
        self._refs = set[Any]()
        self._changing = free_in_forks(Lock())
        # Within a list Ray passes the reference: only a process that begins fetches the call.
        self._begin = [ray.put(pickle.dumps(begin, protocol=5))]
        self._name = uuid4().hex
        task = ray.remote(max_retries=RETRIES)(_answer)
        self._task = task.options(name="relax_egraph")

    def run(self, call: Callable[[], T], limits: Limits) -> T | Death:
        """What `Pool.run` returns or raises, on a machine of the cluster.

        The time of the call begins on the machine, not while it waits for a core.
        """
        ray = ray_module()

        request = pickle.dumps((call, limits), protocol=5)
        with self._changing:
            if self._closed:
                raise CancelledError
            ref = self._task.remote(self._name, digest_of_code(), self._begin, request)
            self._refs.add(ref)
        try:
            has_returned, value = pickle.loads(ray.get(ref))
        except ray_module("ray.exceptions").RayError as problem:
            if self._closed:
                raise CancelledError from None
            first = str(problem).partition("\n")[0]
            raise RelaxEgraphError(f"the Ray cluster lost a call for good: {first}") from problem
        finally:
            with self._changing:
                self._refs.discard(ref)
        if not has_returned:
            raise value
        return cast("T | Death", value)

    def close(self) -> None:
        """Cancel the calls that run or wait; processes of Ray end with their last call."""
        ray = ray_module()

        with self._changing:
            self._closed = True
            refs = tuple(self._refs)
        for ref in refs:
            ray.cancel(ref, force=True)


_pools = dict[str, Pool]()
"""In a process of Ray: the worker of the pool whose calls it runs."""


def _answer(name: str, code: str, begin: list[Any], request: bytes) -> bytes:
    """In a process of Ray: what the call in `request` returns, or raises."""
    try:
        call, limits = pickle.loads(request)
        answer = True, _pool(name, code, begin).run(call, limits)
    except Exception as error:
        answer = False, error
    return pickle.dumps(answer, protocol=5)


def _pool(name: str, code: str, begin: list[Any]) -> Pool:
    """The pool of one worker of this process that has begun as `begin` says."""
    if name not in _pools:
        ray = ray_module()

        if digest_of_code() != code:
            raise RelaxEgraphError(
                f"the machine {node()} of the Ray cluster has other sources of relax-egraph than "
                "this one; install the same version on all machines"
            )
        while _pools:
            _pools.popitem()[1].close()
        _pools[name] = Pool(1, pickle.loads(ray.get(begin[0])))
    return _pools[name]
