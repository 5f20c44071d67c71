"""What is known of an operator besides what it does: how many operands, which defaults.

ONNX's own operators have schemas.  Those of other domains, such as ``com.microsoft``, have none,
and neither have some that runtimes put into ONNX's own domain; what converts one says it, by
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
    """From `least` to `most` operands, and attributes that have `defaults`.

    `kinds` are the types of attributes, as a protocol buffer numbers them, where they are known;
    `required` are those that have no default and must be given.
    `version` is the opset in which the operator got this form.  `schema` is that of ONNX, an
    ``onnx.defs.OpSchema`` whose declared type lacks what is asked of it here.
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

    def check_attributes(self, given: Mapping[str, onnx.AttributeProto]) -> None:
        """Raise `ModelError` unless all are there that must be, each of the type that is wanted."""
        for name in self.required:
            if name not in given:
                raise ModelError(f"it has no attribute {name!r}")
        for name, attribute in given.items():
            wanted = self.kinds.get(name, attribute.type)
            if attribute.type != wanted:
                raise ModelError(wrong_kind(name, attribute.type, wanted))

    def check_arity(self, count: int) -> None:
        """Raise `ModelError` unless the operator takes so many operands."""
        if not self.least <= count <= self.most:
            raise ModelError(f"it has {count} operands, takes {self.least} to {self.most}")


def wrong_kind(name: str, has: int, needs: int) -> str:
    """What is wrong with an attribute that has the type `has`."""
    first, second = (onnx.AttributeProto.AttributeType.Name(kind) for kind in (has, needs))
    return f"its attribute {name!r} is of type {first}, needs {second}"


def takes(least: int, most: int, **defaults: float | str) -> Signature:
    """The signature of an operator that no schema describes."""
    attributes = {name: helper.make_attribute(name, value) for name, value in defaults.items()}
    return Signature(least, most, attributes)


def of_schema(op: str, opset: int, domain: str) -> Signature | None:
    """The signature of an operator that ONNX describes."""
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
