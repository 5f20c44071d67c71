"""An inference request: the bytes of a body, checked against a model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from relax_egraph.errors import nearest
from relax_egraph.inference.rows import Array
from relax_egraph.inference.tensor import Tensor
from relax_egraph.server.model import Model, shape_text
from relax_egraph.server.refusal import bad
from relax_egraph.server.tensors import DATATYPES, from_bytes, from_json

_DTYPES = {datatype: dtype for dtype, datatype in DATATYPES.items()}
_LARGEST_EXTENT = 2**31 - 1


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
    known = {tensor.name: tensor for tensor in model.inputs}
    inputs = dict[str, Array]()
    for entry in _objects(request, "inputs", "the request"):
        name = _member(entry, "name", str, "an input")
        if name not in known:
            raise bad(_no_such("input", name, model, known))
        if name in inputs:
            raise bad(f"input {name!r} is there twice")
        inputs[name], tail = _input(entry, known[name], model, tail)
    if missing := [name for name in known if name not in inputs]:
        raise bad(f"input {missing[0]!r} is missing; model {model.name!r} needs {_names(known)}")
    if tail:
        raise bad(f"behind the inputs there are {len(tail)} bytes that belong to none")
    _check_symbols(inputs, model)
    return Request(identity, inputs, _outputs(request, model))


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
    entry: Mapping[str, Any], tensor: Tensor, model: Model, tail: memoryview
) -> tuple[Array, memoryview]:
    """The array of an input, and the bytes behind it."""
    where = f"input {tensor.name!r}"
    datatype = _member(entry, "datatype", str, where)
    needed = DATATYPES[tensor.dtype]
    if datatype not in _DTYPES:
        raise bad(f"{where} has datatype {datatype[:40]!r}, needs {needed}")
    if datatype != needed:
        raise bad(f"{where} has datatype {datatype}; model {model.name!r} takes {needed}")
    shape = _shape(entry, where)
    if not _fits(shape, tensor.shape):
        takes = shape_text(tensor.shape)
        raise bad(f"{where} has shape {_cut(shape)}; model {model.name!r} takes {takes}")
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


def _shape(entry: Mapping[str, Any], where: str) -> tuple[int, ...]:
    shape = _member(entry, "shape", list, where)
    if not all(type(extent) is int and 0 <= extent <= _LARGEST_EXTENT for extent in shape):
        raise bad(f"{where}: shape needs to be a list of integers from 0 to {_LARGEST_EXTENT}")
    if len(shape) > 32 or prod(e for e in shape if e) >= 2**62:
        raise bad(f"{where}: shape {_cut(shape)} is larger than any array")
    return tuple(shape)


def _fits(shape: Sequence[int], model: Sequence[int | str]) -> bool:
    extents = zip(shape, model, strict=False)
    return len(shape) == len(model) and all(isinstance(m, str) or e == m for e, m in extents)


def _check_symbols(inputs: Mapping[str, Array], model: Model) -> None:
    """Refuse two sizes of one symbol."""
    sizes = dict[str, tuple[int, str]]()
    for tensor in model.inputs:
        extents = zip(tensor.shape, inputs[tensor.name].shape, strict=True)
        for symbol, extent in extents:
            if isinstance(symbol, str) and symbol.isidentifier():
                first, other = sizes.setdefault(symbol, (extent, tensor.name))
                if first != extent:
                    of = f"{first} in input {other!r} and {extent} in input {tensor.name!r}"
                    raise bad(f"{symbol} is {of}; needs to be the same")


def _outputs(request: Mapping[str, Any], model: Model) -> Mapping[str, bool]:
    known = [tensor.name for tensor in model.outputs]
    parameters = _member(request, "parameters", dict, "the request", {})
    binary = _flag(parameters, "binary_data_output", "the request", False)
    if not request.get("outputs"):
        return dict.fromkeys(known, binary)
    outputs = dict[str, bool]()
    for entry in _objects(request, "outputs", "the request"):
        name = _member(entry, "name", str, "an output")
        if name not in known:
            raise bad(_no_such("output", name, model, known))
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


def _no_such(kind: str, name: str, model: Model, known: Sequence[str] | Mapping[str, Any]) -> str:
    said = f"model {model.name!r} has no {kind} {name[:60]!r}; it has {_names(known)}"
    return "; ".join(filter(None, (said, nearest(name[:60], (*known,)))))


def _names(known: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(known) or "none"


def _cut(shape: Sequence[int]) -> str:
    return str(list(shape)) if len(shape) <= 8 else f"[{', '.join(map(str, shape[:8]))}, …]"
