"""The attributes of a node, with the defaults of the operator's schema."""

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import helper

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.signatures import wrong_kind
from relax_egraph.frontends.onnx.tensors import dtype_of

_EMPTY = onnx.AttributeProto()


class Attributes:
    """Typed access to attributes by name.

    A getter raises `ModelError` for an attribute that is absent without a default, or of another
    type.
    """

    def __init__(
        self,
        explicit: Mapping[str, onnx.AttributeProto],
        defaults: Mapping[str, onnx.AttributeProto],
    ) -> None:
        self._explicit = explicit
        self._defaults = defaults

    def has(self, name: str) -> bool:
        """Whether the node itself has the attribute, not only the schema."""
        return name in self._explicit

    def schema_default(self, name: str) -> Any:
        """The value of the node, or the default, or ``None`` without either."""
        attribute = self._explicit.get(name) or self._defaults.get(name)
        return None if attribute is None else _value(attribute)

    def integer(self, name: str) -> int:
        """An integer."""
        return self._typed(name, onnx.AttributeProto.INT)

    def number(self, name: str) -> float:
        """A number, with the exact value of its float32."""
        return self._typed(name, onnx.AttributeProto.FLOAT)

    def text(self, name: str) -> str:
        """A string."""
        return self._typed(name, onnx.AttributeProto.STRING)

    def integers(self, name: str) -> tuple[int, ...]:
        """Integers."""
        return self._typed(name, onnx.AttributeProto.INTS)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Numbers."""
        return self._typed(name, onnx.AttributeProto.FLOATS)

    def texts(self, name: str) -> tuple[str, ...]:
        """Strings."""
        return self._typed(name, onnx.AttributeProto.STRINGS)

    def tensor(self, name: str) -> onnx.TensorProto:
        """A tensor, as its protocol buffer."""
        return self._typed(name, onnx.AttributeProto.TENSOR)

    def graph(self, name: str) -> onnx.GraphProto:
        """A subgraph."""
        return self._typed(name, onnx.AttributeProto.GRAPH)

    def dtype(self, name: str) -> str:
        """The name of a dtype."""
        return dtype_of(self.integer(name))

    def _typed(self, name: str, kind: int) -> Any:
        attribute = self._explicit.get(name) or self._defaults.get(name)
        if attribute is None:
            raise ModelError(f"it has no attribute {name!r}")
        if attribute.type != kind:
            raise ModelError(wrong_kind(name, attribute.type, kind))
        return _value(attribute)


def _value(attribute: onnx.AttributeProto) -> Any:
    try:
        value = helper.get_attribute_value(attribute)
    except ValueError as error:
        raise ModelError(f"its attribute {attribute.name!r} does not read: {error}") from None
    match value:
        case bytes():
            return _text(value, attribute.name)
        case list() if attribute.type == onnx.AttributeProto.STRINGS:
            return tuple(_text(v, attribute.name) for v in value)
        case onnx.TensorProto() | onnx.GraphProto() | int() | float():
            return value
        case None | onnx.SparseTensorProto() | onnx.TypeProto():
            raise ModelError(f"its attribute {attribute.name!r} has no value that is read here")
        case _:
            return tuple(value)


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ModelError(f"its attribute {name!r} is no text") from None
