"""Strips the weights from the bytes of a model, and refers to them in place.

Parsing a protocol buffer copies it, so a model would be in memory twice.  Here the raw bytes of
large tensors are removed before parsing, and the tensors refer to them as *external data* in the
file named `ITSELF`.

The encoding is described at https://protobuf.dev/programming-guides/encoding; the numbers of fields
come from ``onnx.proto``.
"""

from collections.abc import Iterator, Mapping

import onnx

from relax_egraph.errors import ModelError

ITSELF = "\0itself"
"""The location of external data in the model's own bytes; no file has this name."""

_LARGE = 1024
"""The least bytes of a tensor that is stripped."""

_NESTED: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
}
"""The path to tensors: by kind of message and number of field, the kind of the field."""

_RAW_DATA = 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 100


def without_weights(data: memoryview) -> bytes:
    """The serialized model `data`, with large tensors that refer to `ITSELF`.

    Raises `ModelError` for a malformed protocol buffer.
    """
    return _stripped(data, 0, len(data), "model", _DEEPEST)


def _stripped(data: memoryview, start: int, end: int, kind: str, depth: int) -> bytes:
    if depth == 0:
        raise ModelError("the model is malformed: its messages are nested too deeply")
    if kind == "tensor":
        return _stripped_tensor(data, start, end)
    nested = _NESTED[kind]
    parts: list[bytes | memoryview] = []
    for number, wire_type, begin, content, after in _fields(data, start, end):
        if number in nested and wire_type == _BYTES:
            inner = _stripped(data, content, after, nested[number], depth - 1)
            parts += [_varint(number << 3 | _BYTES), _varint(len(inner)), inner]
        else:
            parts.append(data[begin:after])
    return b"".join(parts)


def _stripped_tensor(data: memoryview, start: int, end: int) -> bytes:
    parts: list[memoryview] = []
    where: tuple[int, int] | None = None
    for number, wire_type, begin, content, after in _fields(data, start, end):
        if number == _RAW_DATA and wire_type == _BYTES and after - content >= _LARGE:
            where = content, after - content
        else:
            parts.append(data[begin:after])
    kept = b"".join(parts)
    if where is None:
        return kept
    offset, length = where
    reference = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", ITSELF), ("offset", offset), ("length", length)):
        reference.external_data.add(key=key, value=str(value))
    return kept + reference.SerializeToString()


def _fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """The fields of a message: number, wire type, start, start of the content, and end."""
    at = start
    while at < end:
        begin = at
        key, at = _read_varint(data, at, end)
        number, wire_type = key >> 3, key & 7
        content = at
        if wire_type == _VARINT:
            _, at = _read_varint(data, at, end)
        elif wire_type == _BYTES:
            length, content = _read_varint(data, at, end)
            at = content + length
        elif wire_type in (_FIXED32, _FIXED64):
            at += 4 if wire_type == _FIXED32 else 8
        else:
            raise ModelError(f"the model is malformed: no field can begin at byte {begin}")
        if at > end:
            raise ModelError(f"the model is malformed: the field at byte {begin} is cut off")
        yield number, wire_type, begin, content, at


def _read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ModelError(f"the model is malformed: the number at byte {at} is cut off")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
