"""Where nodes are converted."""

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from relax_egraph.frontends.onnx.model import Model
from relax_egraph.frontends.onnx.values import Scope


@dataclass(frozen=True, slots=True)
class Frame:
    """What names mean, which opset counts in which domain, and so many functions deep.

    `given` are the attributes with which the function was called whose body is converted.
    """

    scope: Scope
    model: Model
    opsets: Mapping[str, int]
    given: Mapping[str, onnx.AttributeProto]
    depth: int = 0


def domain_of(domain: str) -> str:
    """The name of a domain: that of ONNX itself has two."""
    return "" if domain == "ai.onnx" else domain
