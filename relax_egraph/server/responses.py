"""What is sent: the answer to a request, metadata, and errors."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import relax_egraph as rx
from relax_egraph.inference.rows import Arrays
from relax_egraph.inference.tensor import Tensor
from relax_egraph.server.model import Model
from relax_egraph.server.requests import Request
from relax_egraph.server.tensors import DATATYPES, to_bytes, to_json

VERSION = "1"
"""The one version that a file has."""


def answer(request: Request, outputs: Arrays, model: Model) -> tuple[bytes, int | None]:
    """The body of the answer, and how many bytes of it are JSON if not all of them are."""
    tail = list[bytes]()
    described = list[dict[str, Any]]()
    for name, binary in request.outputs.items():
        array = outputs[name]
        entry: dict[str, Any] = {
            "name": name,
            "datatype": DATATYPES[array.dtype.name],
            "shape": array.shape,
        }
        if binary:
            tail.append(to_bytes(array))
            entry["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            entry["data"] = to_json(array)
        described.append(entry)
    named = {"model_name": model.name, "model_version": VERSION}
    identity = {} if request.id is None else {"id": request.id}
    head = json_bytes({**named, **identity, "outputs": described})
    return b"".join((head, *tail)), len(head) if tail else None


def server_metadata() -> Mapping[str, Any]:
    """What ``/v2`` says."""
    extensions = ["binary_tensor_data"]
    return {"name": "relax-egraph", "version": rx.__version__, "extensions": extensions}


def model_metadata(model: Model) -> Mapping[str, Any]:
    """What is said of a model; an extent that is free is -1."""
    return {
        "name": model.name,
        "versions": [VERSION],
        "platform": "relax-egraph",
        "inputs": _described(model.inputs),
        "outputs": _described(model.outputs),
    }


def _described(tensors: Sequence[Tensor]) -> list[Mapping[str, Any]]:
    return [
        {
            "name": tensor.name,
            "datatype": DATATYPES[tensor.dtype],
            "shape": [extent if isinstance(extent, int) else -1 for extent in tensor.shape],
        }
        for tensor in tensors
    ]


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
