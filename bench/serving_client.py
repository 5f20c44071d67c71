"""Clients of a server: a connection that is kept, and requests of the V2 protocol."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relax_egraph.inference.rows import Arrays
from relax_egraph.server.tensors import DATATYPES, from_bytes, from_json, to_bytes, to_json

_DTYPES = {datatype: dtype for dtype, datatype in DATATYPES.items()}
_JSON_LENGTH = "inference-header-content-length"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def outputs(self) -> Arrays:
        """The outputs, of JSON or bytes."""
        length = int(self.headers.get(_JSON_LENGTH, len(self.body)))
        tail = memoryview(self.body)[length:]
        arrays: dict[str, Any] = {}
        for entry in json.loads(self.body[:length])["outputs"]:
            name, dtype, shape = entry["name"], _DTYPES[entry["datatype"]], tuple(entry["shape"])
            if "data" in entry:
                arrays[name] = from_json(entry["data"], dtype, shape, name)
            else:
                size = entry["parameters"]["binary_data_size"]
                arrays[name], tail = from_bytes(tail[:size], dtype, shape, name), tail[size:]
        return arrays


class Connection:
    """A connection to a server, that is opened again if the server closed it."""

    def __init__(self, host: str, port: int) -> None:
        self._at = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: bytes) -> Answer:
        """Send the bytes of an HTTP request, and read the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._at)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = head.rstrip().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(status.split()[1]), headers, body)

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def infer_request(path: str, inputs: Arrays, binary: bool) -> bytes:
    """An inference request, with bytes or JSON in both directions."""
    entries, tail = list[dict[str, Any]](), list[bytes]()
    for name, array in inputs.items():
        entry: dict[str, Any] = {
            "name": name,
            "datatype": DATATYPES[array.dtype.name],
            "shape": array.shape,
        }
        if binary:
            tail.append(to_bytes(np.ascontiguousarray(array)))
            entry["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            entry["data"] = to_json(array)
        entries.append(entry)
    parameters = {"binary_data_output": True} if binary else {}
    head = json.dumps({"inputs": entries, "parameters": parameters}).encode()
    more = {_JSON_LENGTH: str(len(head))} if binary else {}
    return http_request(path, b"".join((head, *tail)), more)


def http_request(path: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a POST request."""
    lines = {"host": "server", "content-length": str(len(body)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body
