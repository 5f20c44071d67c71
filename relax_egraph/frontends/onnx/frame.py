"""The context in which nodes are converted."""

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from relax_egraph.frontends.onnx.model import Model
from relax_egraph.frontends.onnx.values import Scope


@dataclass(frozen=True, slots=True)
class Frame:
    """Scope, opsets by domain, and nesting depth of functions.

    `attributes` are the attributes of the call of the function whose body is converted.
    """

    scope: Scope
    model: Model
    opsets: Mapping[str, int]
    attributes: Mapping[str, onnx.AttributeProto]
    depth: int = 0


def domain_of(domain: str) -> str:
    """The canonical name of a domain: ONNX itself has two names."""
    return "" if domain == "ai.onnx" else domain
