"""Checks that strings of a model are UTF-8, and that its graphs are not nested too deeply.

Protocol buffers of this syntax accept any bytes as a string; Python returns them as ``bytes``.
"""

from functools import cache
from typing import Any

import onnx
from google.protobuf.descriptor import Descriptor

from relax_egraph.errors import ModelError

DEEPEST = 64
"""The depth limit of nested function calls and of nested graphs."""


def check_texts(model: onnx.ModelProto) -> None:
    """Raise `ModelError` for a string that is not UTF-8, and for a graph nested too deeply."""
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
    """The string fields and the message fields of a message, and whether they are repeated."""
    named = [(f.name, f.is_repeated, f) for f in kind.fields]
    texts = [(name, repeated) for name, repeated, f in named if f.type == f.TYPE_STRING]
    return texts, [(name, repeated) for name, repeated, f in named if f.message_type is not None]
