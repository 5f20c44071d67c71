"""Dynamic batching: calls that wait at the same time run as one."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf

from relax_egraph.inference.rows import Arrays, joined
from relax_egraph.server.model import rows_of
from relax_egraph.server.waiting import Waiting, WaitingCalls

_SHORT = 1e-3
"""Seconds of a batch that runs on the event loop; meanwhile it does nothing else."""

_MOST_KINDS = 256


@dataclass(frozen=True, slots=True)
class _Call:
    inputs: Arrays
    outputs: "asyncio.Future[Arrays]"


class Batcher:
    """Runs calls of `run`, one batch after another; of one event loop.

    A batch runs on a thread, but one that is known to be short, on the loop: a thread waits longer
    for the interpreter, which the loop has, than such a batch runs.

    Calls are joined along the first extent of all their inputs, if all else of the inputs agrees.
    A batch that fails is run again call by call, so that a call fails by its own inputs alone.
    `observe` is told the rows of each batch and the seconds that it ran.
    """

    def __init__(
        self,
        run: Callable[[Arrays], Arrays],
        most_rows: int,
        max_wait: float,
        observe: Callable[[int, float], None],
    ) -> None:
        self._run = run
        self._observe = observe
        self._waiting = WaitingCalls[_Call](most_rows, max_wait)
        self._due = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "batches")
        self._seconds_of_row = dict[Hashable, float]()
        self._loop: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """The calls that wait."""
        return len(self._waiting)

    async def __call__(self, inputs: Arrays) -> Arrays:
        """The outputs; raises what the call raises."""
        loop = asyncio.get_running_loop()
        rows = rows_of(inputs)
        kind = self._kind(inputs, rows)
        call = _Call(inputs, loop.create_future())
        self._waiting.add(Waiting(call, kind, rows or 0, loop.time()))
        if self._loop is None:
            self._loop = loop.create_task(self._run_all())
        elif not self._waiting.seconds_left(loop.time()):
            self._due.set()
        return await call.outputs

    def _kind(self, inputs: Arrays, rows: int | None) -> Hashable | None:
        if rows is None or self._waiting.most_rows == 1:
            return None
        return tuple((name, inputs[name].dtype, inputs[name].shape[1:]) for name in sorted(inputs))

    async def _run_all(self) -> None:
        """Run batches until no call waits."""
        loop = asyncio.get_running_loop()
        self._due = asyncio.Event()
        try:
            while self._waiting:
                if left := self._waiting.seconds_left(loop.time()):
                    await self._wait(left)
                    continue
                taken = self._waiting.take()
                calls = [w.call for w in taken if not w.call.outputs.done()]  # some gave up
                if calls:
                    await self._run_batch(calls, taken[0].kind, sum(w.rows for w in taken))
        finally:
            self._loop = None

    async def _wait(self, seconds: float) -> None:
        self._due.clear()
        alarm = asyncio.get_running_loop().call_later(seconds, self._due.set)
        await self._due.wait()
        alarm.cancel()

    async def _run_batch(self, calls: Sequence[_Call], kind: Hashable, rows: int) -> None:
        if rows * self._seconds_of_row.get(kind, inf) < _SHORT:
            answers, seconds = self._timed_outputs(calls)
            await asyncio.sleep(0)  # other tasks of the loop have their turn
        else:
            loop = asyncio.get_running_loop()
            run = partial(self._timed_outputs, calls)
            answers, seconds = await loop.run_in_executor(self._thread, run)
        if kind is not None and rows:
            if len(self._seconds_of_row) >= _MOST_KINDS:
                self._seconds_of_row.clear()
            self._seconds_of_row[kind] = seconds / rows
        self._observe(rows, seconds)
        _deliver(calls, answers)

    def _timed_outputs(self, calls: Sequence[_Call]) -> tuple[Sequence[Arrays | Exception], float]:
        start = time.perf_counter()
        return self._outputs(calls), time.perf_counter() - start

    def _outputs(self, calls: Sequence[_Call]) -> Sequence[Arrays | Exception]:
        if len(calls) == 1:
            return [self._outcome(calls[0].inputs)]
        rows = [rows_of(call.inputs) or 0 for call in calls]
        outputs = self._outcome(*(call.inputs for call in calls))
        if isinstance(outputs, Exception) or rows_of(outputs) != sum(rows):
            return [self._outcome(call.inputs) for call in calls]
        ends = [sum(rows[: place + 1]) for place in range(len(rows))]
        return [
            {name: array[end - count : end] for name, array in outputs.items()}
            for end, count in zip(ends, rows, strict=True)
        ]

    def _outcome(self, *inputs: Arrays) -> Arrays | Exception:
        try:
            return self._run(joined(inputs))
        except Exception as error:
            return error


def _deliver(calls: Sequence[_Call], answers: Sequence[Arrays | Exception]) -> None:
    for call, answer in zip(calls, answers, strict=True):
        if call.outputs.done():
            continue
        if isinstance(answer, Exception):
            call.outputs.set_exception(answer)
        else:
            call.outputs.set_result(answer)
