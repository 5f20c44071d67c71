"""An inference request over HTTP: the bytes of a body, checked against a model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from relax_egraph.inference.rows import Array
from relax_egraph.inference.tensor import Tensor
from relax_egraph.server.checks import Inputs, check_output
from relax_egraph.server.model import Model
from relax_egraph.server.refusal import bad
from relax_egraph.server.tensors import from_bytes, from_json


@dataclass(frozen=True, slots=True)
class Request:
    """The inputs of a call, and which outputs are sent in which form."""

    id: str | None
    inputs: Mapping[str, Array]
    outputs: Mapping[str, bool]
    """Whether each is sent as bytes; in the order of the answer."""


def request_of(body: bytes, json_length: str | None, model: Model) -> Request:
    """Read `body`, whose first `json_length` bytes are JSON if that is said, or all of them.

    Raises `Refused` with a sentence.
    """
    head, tail = _parts(body, json_length)
    try:
        data = json.loads(head)
    except RecursionError:
        raise bad("the JSON of the request has too many lists within lists") from None
    except UnicodeDecodeError as error:
        problem = f"{error.reason} at byte {error.start}"
        raise bad(f"the request is no JSON: {problem}") from None
    except ValueError as error:
        raise bad(f"the request is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise bad('the request needs to be an object with "inputs"')
    request = cast(dict[str, Any], data)
    identity = _member(request, "id", str, "the request", None)
    inputs = Inputs(model)
    for entry in _objects(request, "inputs", "the request"):
        tensor = inputs.tensor(_member(entry, "name", str, "an input"))
        inputs.arrays[tensor.name], tail = _input(entry, tensor, inputs, tail)
    arrays = inputs.all()
    if tail:
        raise bad(f"behind the inputs there are {len(tail)} bytes that belong to none")
    return Request(identity, arrays, _outputs(request, model))


def _parts(body: bytes, json_length: str | None) -> tuple[bytes, memoryview]:
    if json_length is None:
        return body, memoryview(b"")
    if not (json_length.isascii() and json_length.isdigit()) or len(json_length) > 18:
        raise bad("Inference-Header-Content-Length needs to be a number of bytes")
    length = int(json_length)
    if length > len(body):
        raise bad(f"Inference-Header-Content-Length is {length}; the body has {len(body)} bytes")
    return body[:length], memoryview(body)[length:]


def _input(
    entry: Mapping[str, Any], tensor: Tensor, inputs: Inputs, tail: memoryview
) -> tuple[Array, memoryview]:
    """The array of an input, and the bytes behind it."""
    where = f"input {tensor.name!r}"
    datatype = _member(entry, "datatype", str, where)
    shape = tuple(_member(entry, "shape", list, where))
    inputs.check_type(tensor, datatype, shape)
    parameters = _member(entry, "parameters", dict, where, {})
    size = parameters.get("binary_data_size")
    if size is None:
        data = _member(entry, "data", list, where)
        return from_json(data, tensor.dtype, shape, where), tail
    if type(size) is not int or size < 0:
        raise bad(f"{where}: binary_data_size needs to be a number of bytes")
    if "data" in entry:
        raise bad(f"{where} has data, and binary_data_size: needs one of them")
    if size > len(tail):
        raise bad(f"{where}: binary_data_size is {size}; {len(tail)} bytes are left in the body")
    return from_bytes(tail[:size], tensor.dtype, shape, where), tail[size:]


def _outputs(request: Mapping[str, Any], model: Model) -> Mapping[str, bool]:
    known = [tensor.name for tensor in model.outputs]
    parameters = _member(request, "parameters", dict, "the request", {})
    binary = _flag(parameters, "binary_data_output", "the request", False)
    if not request.get("outputs"):
        return dict.fromkeys(known, binary)
    outputs = dict[str, bool]()
    for entry in _objects(request, "outputs", "the request"):
        name = _member(entry, "name", str, "an output")
        check_output(name, model)
        own = _member(entry, "parameters", dict, f"output {name!r}", {})
        outputs[name] = _flag(own, "binary_data", f"output {name!r}", binary)
    return outputs


def _flag(parameters: Mapping[str, Any], name: str, where: str, default: bool) -> bool:
    return _member(parameters, name, bool, where, default)


_WORDS = {str: "a text", list: "a list", dict: "an object", bool: "true or false"}
_NEEDED: Any = object()


def _member(
    entry: Mapping[str, Any], name: str, kind: type, where: str, default: Any = _NEEDED
) -> Any:
    """Member `name`; one that is null is not there."""
    value = entry.get(name)
    if value is None and default is not _NEEDED:
        return default
    if not isinstance(value, kind):
        raise bad(f"{where} needs {name!r}: {_WORDS[kind]}")
    return value


def _objects(entry: Mapping[str, Any], name: str, where: str) -> Sequence[Mapping[str, Any]]:
    values = _member(entry, name, list, where)
    if not all(isinstance(value, dict) for value in values):
        raise bad(f"{where} needs {name!r}: a list of objects")
    return values
