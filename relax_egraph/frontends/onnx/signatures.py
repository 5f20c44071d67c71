"""Signatures of operators: number of operands, types and defaults of attributes.

ONNX's own operators have schemas.  Operators of other domains, such as ``com.microsoft``, have
none, nor do some that runtimes add to ONNX's domain; their converters declare a signature with
`takes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import defs, helper

from relax_egraph.errors import ModelError


@dataclass(frozen=True, slots=True)
class Signature:
    """From `least` to `most` operands, and attributes with `defaults`.

    `kinds` are the known types of attributes, by their protocol buffer numbers; `required` are
    attributes without a default.  `version` is the opset that introduced this form of the
    operator.  `schema` is an ``onnx.defs.OpSchema``, whose type stub lacks the attributes used
    here.
    """

    least: int
    most: int
    defaults: Mapping[str, onnx.AttributeProto] = field(
        default_factory=dict[str, onnx.AttributeProto]
    )
    version: int = 1
    schema: Any = None
    kinds: Mapping[str, int] = field(default_factory=dict[str, int])
    required: tuple[str, ...] = ()

    def check_attributes(self, explicit: Mapping[str, onnx.AttributeProto]) -> None:
        """Raise `ModelError` unless all required attributes are present, each of the right type."""
        for name in self.required:
            if name not in explicit:
                raise ModelError(f"it has no attribute {name!r}")
        for name, attribute in explicit.items():
            wanted = self.kinds.get(name, attribute.type)
            if attribute.type != wanted:
                raise ModelError(wrong_kind(name, attribute.type, wanted))

    def check_arity(self, count: int) -> None:
        """Raise `ModelError` unless the operator takes `count` operands."""
        if not self.least <= count <= self.most:
            raise ModelError(f"it has {count} operands, takes {self.least} to {self.most}")


def wrong_kind(name: str, has: int, needs: int) -> str:
    """The message for an attribute of the type `has` instead of `needs`."""
    first, second = (onnx.AttributeProto.AttributeType.Name(kind) for kind in (has, needs))
    return f"its attribute {name!r} is of type {first}, needs {second}"


def takes(least: int, most: int, **defaults: float | str) -> Signature:
    """The signature of an operator without a schema."""
    attributes = {name: helper.make_attribute(name, value) for name, value in defaults.items()}
    return Signature(least, most, attributes)


def of_schema(op: str, opset: int, domain: str) -> Signature | None:
    """The signature of an operator from its schema."""
    try:
        schema: Any = defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None
    defaults = {name: a.default_value for name, a in schema.attributes.items()}
    return Signature(
        schema.min_input,
        schema.max_input,
        {name: default for name, default in defaults.items() if default.type},
        schema.since_version,
        schema,
        {name: int(a.type.value) for name, a in schema.attributes.items()},
        tuple(name for name, a in schema.attributes.items() if a.required),
    )
