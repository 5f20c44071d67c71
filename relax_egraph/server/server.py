"""A model behind a queue: requests are admitted, run together, counted, and given up in time."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import TypeVar

from relax_egraph.errors import RelaxEgraphError, RunError
from relax_egraph.inference.independence import dependent_result
from relax_egraph.inference.rows import Arrays
from relax_egraph.server.batcher import Batcher
from relax_egraph.server.limits import Limits
from relax_egraph.server.metrics import Metrics
from relax_egraph.server.model import Model
from relax_egraph.server.refusal import Refused, bad, unknown
from relax_egraph.server.requests import Request
from relax_egraph.server.responses import VERSION

LOG = logging.getLogger(__name__)

_ROWS_WITHOUT_BOUNDS = 64

Answer = TypeVar("Answer")


class Server:
    """A model with its limits, its queue and its counts; `application` is what serves it."""

    def __init__(self, model: Model, limits: Limits, labels: Mapping[str, str]) -> None:
        self.model = model
        self.limits = limits
        self.joined = model.batch is not None and limits.max_batch != 1 and _can_be_joined(model)
        most = limits.max_batch or (model.bounds[-1] if model.bounds else _ROWS_WITHOUT_BOUNDS)
        self.metrics = Metrics(
            {"model": model.name, **labels}, model.bounds, lambda: len(self._batcher)
        )
        self._batcher = Batcher(
            model, most if self.joined else 1, limits.max_wait, self.metrics.ran
        )
        self._admitted = 0

    async def answered(
        self,
        name: str,
        version: str,
        read: Callable[[], Awaitable[Request]],
        written: Callable[[Request, Arrays], Answer],
    ) -> Answer:
        """The answer to an inference request for version `version` of the model `name`.

        `read` waits for the request, `written` makes the answer of its outputs.  Raises `Refused`,
        also for what fails here, of which the log has more.
        """
        start = time.perf_counter()
        try:
            with self._admitting(name, version):
                answer = written(*await self._run(read))
        except Refused as refusal:
            self.metrics.answered(refusal.status, time.perf_counter() - start)
            raise
        except Exception:
            LOG.exception("%s: a request failed", self.model.name)
            failed = HTTPStatus.INTERNAL_SERVER_ERROR
            self.metrics.answered(failed, time.perf_counter() - start)
            raise Refused(failed, "the server failed; its log has why") from None
        self.metrics.answered(HTTPStatus.OK, time.perf_counter() - start)
        return answer

    @contextmanager
    def _admitting(self, name: str, version: str) -> Generator[None]:
        """A place among the requests that are here; raises `Refused` if there is none."""
        self.check_name(name, version)
        if self._admitted >= self.limits.max_queue:
            problem = f"{self._admitted} requests are here, as many as the limit; try again"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, problem)
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1

    async def _run(self, read: Callable[[], Awaitable[Request]]) -> tuple[Request, Arrays]:
        """A request and its outputs, within the time there is."""
        seconds = self.limits.timeout
        late, problem = HTTPStatus.REQUEST_TIMEOUT, f"the request was not sent in {seconds:g} s"
        try:
            async with asyncio.timeout(seconds):
                request = await read()
                late = HTTPStatus.GATEWAY_TIMEOUT
                problem = f"no answer in {seconds:g} s, the limit of this server"
                return request, await self._outputs(request.inputs)
        except TimeoutError:
            raise Refused(late, problem) from None

    async def _outputs(self, inputs: Arrays) -> Arrays:
        try:
            return await self._batcher(inputs)
        except (RelaxEgraphError, ValueError, TypeError) as error:
            raise bad(str(error)) from None
        except MemoryError:
            problem = "the call needs more memory than there is"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem) from None

    def check_name(self, name: str, version: str) -> None:
        """Refuse a request for another model or version."""
        if name != self.model.name:
            raise unknown(f"there is no model {name[:60]!r}; there is {self.model.name!r}")
        if version != VERSION:
            raise unknown(f"model {name!r} has no version {version[:20]!r}; it has {VERSION!r}")


def _can_be_joined(model: Model) -> bool:
    """Whether the rows of `model` are known to be independent; the log says why not."""
    try:
        result = dependent_result(model)
    except RunError as refusal:
        LOG.warning("%s: %s; requests are not joined", model.name, refusal)
        return False
    if result is not None:
        message = "%s: a row of %s depends on the others; requests are not joined"
        LOG.warning(message, model.name, result)
    return result is None
