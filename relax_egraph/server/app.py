"""The server as an ASGI application: addresses, statuses, limits."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from relax_egraph.errors import RelaxEgraphError, RunError
from relax_egraph.inference.independence import dependent_result
from relax_egraph.inference.rows import Arrays
from relax_egraph.server.batcher import Batcher
from relax_egraph.server.limits import Limits
from relax_egraph.server.metrics import CONTENT_TYPE, Metrics
from relax_egraph.server.model import Model
from relax_egraph.server.refusal import Refused, bad, unknown
from relax_egraph.server.requests import request_of
from relax_egraph.server.responses import (
    VERSION,
    answer,
    json_bytes,
    model_metadata,
    server_metadata,
)

LOG = logging.getLogger(__name__)

_JSON_LENGTH = "Inference-Header-Content-Length"
_ROWS_WITHOUT_BOUNDS = 64
_MOST_DROPPED = 4
"""How much of a body that is too large is read, in limits."""

Handler = Callable[[HttpRequest], Awaitable[Response]]


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

    async def infer(self, http: HttpRequest) -> Response:
        """Answer an inference request."""
        start = time.perf_counter()
        try:
            response = await self._admit(http)
        except Refused as refusal:
            response = _error(refusal.status, str(refusal))
        except Exception:
            LOG.exception("%s: a request failed", self.model.name)
            response = _error(
                HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; its log has why"
            )
        self.metrics.answered(response.status_code, time.perf_counter() - start)
        return response

    async def _admit(self, http: HttpRequest) -> Response:
        self.check_name(http)
        if self._admitted >= self.limits.max_queue:
            problem = f"{self._admitted} requests are here, as many as the limit; try again"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, problem)
        self._admitted += 1
        try:
            return await self._answer(http)
        finally:
            self._admitted -= 1

    async def _answer(self, http: HttpRequest) -> Response:
        seconds = self.limits.timeout
        late, problem = HTTPStatus.REQUEST_TIMEOUT, f"the request was not sent in {seconds:g} s"
        try:
            async with asyncio.timeout(seconds):
                body = await self._body(http)
                request = request_of(body, http.headers.get(_JSON_LENGTH), self.model)
                late = HTTPStatus.GATEWAY_TIMEOUT
                problem = f"no answer in {seconds:g} s, the limit of this server"
                outputs = await self._outputs(request.inputs)
        except TimeoutError:
            raise Refused(late, problem) from None
        content, json_length = answer(request, outputs, self.model)
        if json_length is None:
            return Response(content, media_type="application/json")
        headers = {_JSON_LENGTH: str(json_length)}
        return Response(content, headers=headers, media_type="application/octet-stream")

    async def _body(self, http: HttpRequest) -> bytes:
        """The body.

        One that is too large is read on for a while, and dropped: else the client, which still
        sends, would lose the connection before it reads why.
        """
        most = self.limits.max_body
        encoding = http.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            problem = f"the body is encoded by {encoding[:40]!r}; needs to be sent as it is"
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, problem)
        parts, read = list[bytes](), 0
        try:
            async for part in http.stream():
                read += len(part)
                if read > most:
                    parts.clear()
                if read > _MOST_DROPPED * most:
                    break
                parts.append(part)
        except ClientDisconnect:
            raise bad("the body ended before it was complete") from None
        if read > most:
            problem = f"the body has more than {most} bytes, the limit of this server"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
        return b"".join(parts)

    async def _outputs(self, inputs: Arrays) -> Arrays:
        try:
            return await self._batcher(inputs)
        except (RelaxEgraphError, ValueError, TypeError) as error:
            raise bad(str(error)) from None
        except MemoryError:
            problem = "the call needs more memory than there is"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem) from None

    def check_name(self, http: HttpRequest) -> None:
        """Refuse a request for another model or version."""
        name, version = http.path_params["model"], http.path_params.get("version", VERSION)
        if name != self.model.name:
            raise unknown(f"there is no model {name[:60]!r}; there is {self.model.name!r}")
        if version != VERSION:
            raise unknown(f"model {name!r} has no version {version[:20]!r}; it has {VERSION!r}")


async def _own_counts(server: Server) -> bytes:
    return server.metrics.text()


def application(server: Server, counts: Callable[[], Awaitable[bytes]] | None = None) -> Starlette:
    """The ASGI application that serves `server`'s model by the V2 protocol.

    `counts` is the text of ``/metrics``, by default what `server` counted.
    """
    counts = counts or partial(_own_counts, server)

    def of_model(content: Callable[[], Any]) -> Handler:
        async def respond(http: HttpRequest) -> Response:
            server.check_name(http)
            return _json(content())

        return respond

    async def metrics(_: HttpRequest) -> Response:
        return Response(await counts(), media_type=CONTENT_TYPE)

    model, about = "/v2/models/{model}", model_metadata(server.model)
    ready = of_model(lambda: {"name": server.model.name, "ready": True})
    routes = [
        Route("/v2", _always(server_metadata())),
        Route("/v2/health/live", _always({"live": True})),
        Route("/v2/health/ready", _always({"ready": True})),
        Route("/metrics", metrics),
    ]
    for address in (model, model + "/versions/{version}"):
        routes += [
            Route(address, of_model(lambda: about)),
            Route(f"{address}/ready", ready),
            Route(f"{address}/infer", server.infer, methods=["POST"]),
        ]
    refusals: Any = {Refused: _refused, HTTPException: _http_problem}
    return Starlette(routes=routes, exception_handlers=refusals)


def _always(content: Any) -> Handler:
    async def respond(_: HttpRequest) -> Response:
        return _json(content)

    return respond


def _json(content: Any, status: int = HTTPStatus.OK) -> Response:
    return Response(json_bytes(content), status, media_type="application/json")


def _error(status: int, sentence: str) -> Response:
    response = _json({"error": sentence}, status)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = "1"
    if status in (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT):
        response.headers["Connection"] = "close"  # the rest of the body is not read
    return response


async def _refused(_: HttpRequest, refusal: Exception) -> Response:
    assert isinstance(refusal, Refused)
    return _error(refusal.status, str(refusal))


async def _http_problem(http: HttpRequest, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    path = http.url.path[:80]
    said = {
        HTTPStatus.NOT_FOUND: f"there is nothing at {path!r}; addresses begin with /v2/models",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{path!r} does not take {http.method[:20]!r}",
    }
    response = _error(
        problem.status_code, said.get(HTTPStatus(problem.status_code), problem.detail)
    )
    response.headers.update(problem.headers or {})
    return response


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
