"""The server over HTTP, as an ASGI application: addresses, bodies, statuses."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from relax_egraph.inference.rows import Arrays
from relax_egraph.server.metrics import CONTENT_TYPE
from relax_egraph.server.refusal import Refused, bad, too_large
from relax_egraph.server.requests import Request, request_of
from relax_egraph.server.responses import (
    VERSION,
    answer,
    json_bytes,
    model_metadata,
    server_metadata,
)
from relax_egraph.server.server import Server

_JSON_LENGTH = "Inference-Header-Content-Length"
_MOST_DROPPED = 4
"""How much of a body that is too large is read, in limits."""

Handler = Callable[[HttpRequest], Awaitable[Response]]


async def _infer(server: Server, http: HttpRequest) -> Response:
    """Answer an inference request."""

    async def read() -> Request:
        body = await _body(http, server.limits.max_body)
        return request_of(body, http.headers.get(_JSON_LENGTH), server.model)

    def written(request: Request, outputs: Arrays) -> Response:
        content, json_length = answer(request, outputs, server.model)
        if json_length is None:
            return Response(content, media_type="application/json")
        headers = {_JSON_LENGTH: str(json_length)}
        return Response(content, headers=headers, media_type="application/octet-stream")

    return await server.answered(*_asked_for(http), read, written)


async def _body(http: HttpRequest, most: int) -> bytes:
    """The body, of at `most` so many bytes.

    One that is too large is read on for a while, and dropped: else the client, which still
    sends, would lose the connection before it reads why.
    """
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
        raise too_large(most)
    return b"".join(parts)


def _asked_for(http: HttpRequest) -> tuple[str, str]:
    """The model and the version in an address."""
    return http.path_params["model"], http.path_params.get("version", VERSION)


async def _own_counts(server: Server) -> bytes:
    return server.metrics.text()


def application(
    server: Server,
    counts: Callable[[], Awaitable[bytes]] | None = None,
    beside: AbstractAsyncContextManager[None] | None = None,
) -> Starlette:
    """The ASGI application that serves `server`'s model by the V2 protocol.

    `counts` is the text of ``/metrics``, by default what `server` counted.  `beside` is entered
    while the application runs.
    """
    counts = counts or partial(_own_counts, server)

    def of_model(content: Callable[[], Any]) -> Handler:
        async def respond(http: HttpRequest) -> Response:
            server.check_name(*_asked_for(http))
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
            Route(f"{address}/infer", partial(_infer, server), methods=["POST"]),
        ]
    refusals: Any = {Refused: _refused, HTTPException: _http_problem}

    def lifespan(_: Starlette) -> AbstractAsyncContextManager[None]:
        return beside or nullcontext()

    return Starlette(routes=routes, exception_handlers=refusals, lifespan=lifespan)


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
