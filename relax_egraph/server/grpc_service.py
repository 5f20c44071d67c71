"""The server over gRPC: the methods of the V2 protocol, as handlers of grpcio."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias

import grpc
import grpc.aio

from relax_egraph.inference.rows import Arrays
from relax_egraph.server.grpc_requests import message_answer, message_of, request_of_message
from relax_egraph.server.messages import MESSAGES, SERVICE, Message
from relax_egraph.server.refusal import Refused, too_large
from relax_egraph.server.requests import Request
from relax_egraph.server.responses import VERSION, model_metadata, server_metadata
from relax_egraph.server.server import Server

Method: TypeAlias = Callable[[Server, bytes], Awaitable[Message]]

_CODES = {
    HTTPStatus.BAD_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    HTTPStatus.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    HTTPStatus.GATEWAY_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    HTTPStatus.SERVICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
}

_SECONDS_TO_FINISH = 30


def _always(name: str, content: Mapping[str, Any]) -> Method:
    """A method whose answer does not depend on the request."""

    async def respond(_server: Server, data: bytes) -> Message:
        message_of(f"{name}Request", data)
        return MESSAGES[f"{name}Response"](**content)

    return respond


def _of_model(name: str, content: Callable[[Server], Mapping[str, Any]]) -> Method:
    """A method that says something of the model that is asked for."""

    async def respond(server: Server, data: bytes) -> Message:
        asked = message_of(f"{name}Request", data)
        server.check_name(asked.name, asked.version or VERSION)
        return MESSAGES[f"{name}Response"](**content(server))

    return respond


async def _infer(server: Server, data: bytes) -> Message:
    if len(data) > server.limits.max_body:
        raise too_large(server.limits.max_body)
    message = message_of("ModelInferRequest", data)

    async def read() -> Request:
        return request_of_message(message, server.model)

    def written(request: Request, outputs: Arrays) -> Message:
        return message_answer(request, outputs, server.model)

    return await server.answered(
        message.model_name, message.model_version or VERSION, read, written
    )


METHODS: Mapping[str, Method] = {
    "ServerLive": _always("ServerLive", {"live": True}),
    "ServerReady": _always("ServerReady", {"ready": True}),
    "ServerMetadata": _always("ServerMetadata", {**server_metadata(), "extensions": []}),
    "ModelReady": _of_model("ModelReady", lambda _: {"ready": True}),
    "ModelMetadata": _of_model("ModelMetadata", lambda server: model_metadata(server.model)),
    "ModelInfer": _infer,
}
"""The methods of the service by name; each raises `Refused`."""


async def answer(
    name: str, server: Server, data: bytes
) -> tuple[Message, tuple[grpc.StatusCode, str] | None]:
    """The answer of method `name` to the message `data`; or an empty one, with why."""
    try:
        return await METHODS[name](server, data), None
    except Refused as refusal:
        code = _CODES.get(refusal.status, grpc.StatusCode.INTERNAL)
        return MESSAGES[f"{name}Response"](), (code, str(refusal))


def handlers(respond: Callable[[str], Any]) -> grpc.GenericRpcHandler:
    """The service whose method `name` is ``respond(name)``, which gets the bytes of a message."""
    methods = {name: grpc.unary_unary_rpc_method_handler(respond(name)) for name in METHODS}
    return grpc.method_handlers_generic_handler(SERVICE, methods)


@asynccontextmanager
async def listening(server: Server, host: str, port: int) -> AsyncGenerator[None]:
    """Answer for `server` at `host` and `port`; in the end, requests that run are finished."""
    most = ("grpc.max_receive_message_length", server.limits.max_body)
    running = grpc.aio.server(options=[most, ("grpc.so_reuseport", 0)])
    running.add_generic_rpc_handlers([handlers(lambda name: partial(_respond, name, server))])
    running.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    await running.start()
    try:
        yield
    finally:
        await running.stop(_SECONDS_TO_FINISH)


async def _respond(name: str, server: Server, data: bytes, context: Any) -> bytes:
    message, refusal = await answer(name, server, data)
    if refusal is not None:
        await context.abort(*refusal)
    return message.SerializeToString()
