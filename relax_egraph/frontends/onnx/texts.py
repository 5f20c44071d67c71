"""That the texts of a model are texts, and its graphs are nested no deeper than can be followed.

A protocol buffer of this syntax takes any bytes for a text; Python then gives them as ``bytes``.
"""

from functools import cache
from typing import Any

import onnx
from google.protobuf.descriptor import Descriptor

from relax_egraph.errors import ModelError

DEEPEST = 64
"""How deep functions may be called in functions, and graphs be nested in graphs."""


def check_texts(model: onnx.ModelProto) -> None:
    """Raise `ModelError` for a text that is no UTF-8, and for a graph too deep in others."""
    waiting: list[tuple[Any, int]] = [(model, 0)]
    while waiting:
        message, depth = waiting.pop()
        texts, inner = _fields(message.DESCRIPTOR)
        for name, repeated in texts:
            value = getattr(message, name)
            for text in value if repeated else (value,):
                if isinstance(text, bytes):
                    kind = message.DESCRIPTOR.name
                    raise ModelError(f"the {name} of a {kind} is no text: {text[:40]!r}")
        depth += message.DESCRIPTOR is onnx.GraphProto.DESCRIPTOR
        if depth > DEEPEST:
            raise ModelError(f"graphs are nested more than {DEEPEST} deep")
        for name, repeated in inner:
            if repeated:
                waiting.extend((m, depth) for m in getattr(message, name))
            elif message.HasField(name):
                waiting.append((getattr(message, name), depth))


@cache
def _fields(kind: Descriptor) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """The fields of a message that are texts, and that are messages; whether they are repeated."""
    named = [(f.name, f.is_repeated, f) for f in kind.fields]
    texts = [(name, repeated) for name, repeated, f in named if f.type == f.TYPE_STRING]
    return texts, [(name, repeated) for name, repeated, f in named if f.message_type is not None]
