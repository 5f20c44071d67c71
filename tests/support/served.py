"""A model that is not compiled, and requests to an ASGI application without a network."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import relax_egraph as rx
from relax_egraph.inference.rows import Array, Arrays
from relax_egraph.inference.tensor import Tensor

DOUBLED = """
@R.function
def main(x: R.Tensor(("n", 2), "float32")):
    with R.dataflow():
        y = R.add(x, x)
        R.output(y)
    return y
"""


def free_port() -> int:
    """A port of this machine that nothing listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def grpc_method(channel: Any, name: str) -> Any:
    """The method `name` of the V2 protocol, from message to message, at the end of `channel`."""
    from relax_egraph.server.messages import MESSAGES

    return channel.unary_unary(
        f"/inference.GRPCInferenceService/{name}",
        request_serializer=MESSAGES[f"{name}Request"].SerializeToString,
        response_deserializer=MESSAGES[f"{name}Response"].FromString,
    )


def saved_doubled(folder: Path) -> Path:
    """A saved model of 2·x."""
    path = folder / "doubled.rxe"
    rx.build(rx.parse(DOUBLED)).save(path)
    return path


def doubled(inputs: Arrays) -> Arrays:
    """2·x."""
    return {"y": inputs["x"] * 2}


@dataclass(slots=True)
class FakeModel:
    """A function of numpy as a model; it notes the rows of its calls."""

    run: Callable[[Arrays], Arrays] = doubled
    inputs: Sequence[Tensor] = (Tensor("x", "float32", ("n", 2)),)
    outputs: Sequence[Tensor] = (Tensor("y", "float32", ("n", 2)),)
    batch: str | None = "n"
    bounds: Sequence[int] = (1, 4, 8)
    name: str = "fake"
    calls: list[int] = field(default_factory=list[int])

    def __call__(self, inputs: Arrays, /) -> Arrays:
        """The outputs."""
        self.calls.append(len(next(iter(inputs.values()), ())))
        return self.run(inputs)


@dataclass(frozen=True, slots=True)
class Reply:
    """What an application answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def sentence(self) -> str:
        """What an error says."""
        return self.json()["error"]


Headers = Mapping[str, str]
NO_HEADERS: Headers = {}


async def ask(
    app: Any,
    path: str,
    body: bytes | Iterable[bytes] | None = None,
    headers: Headers = NO_HEADERS,
    method: str = "",
    *,
    endless: bool = False,
) -> Reply:
    """What `app` answers: to a GET without a body, to a POST with one, whole or in parts.

    The last part of an `endless` body never comes.
    """
    parts = [body] if isinstance(body, bytes) else [*(body or [b""])]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method or ("GET" if body is None else "POST"),
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": b"",
        "root_path": "",
        "headers": [(n.lower().encode(), v.encode("latin-1")) for n, v in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent = list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        if len(parts) > 1 or (parts and not endless):
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *bodies = sent
    named = {n.decode(): v.decode("latin-1") for n, v in start["headers"]}
    return Reply(start["status"], named, b"".join(b["body"] for b in bodies))


def infer_body(**inputs: Array) -> bytes:
    """A request in JSON for arrays of float32."""
    entries = [
        {"name": n, "datatype": "FP32", "shape": a.shape, "data": a.ravel().tolist()}
        for n, a in inputs.items()
    ]
    return json.dumps({"inputs": entries}).encode()


def rows(*values: float) -> Array:
    """A row of two for each value."""
    return np.repeat(np.array(values, "float32")[:, None], 2, axis=1)
