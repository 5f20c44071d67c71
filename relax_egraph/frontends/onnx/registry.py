"""The registry of converters of ONNX operators."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.frontends.building.registry import Registry
from relax_egraph.frontends.onnx.signatures import Signature
from relax_egraph.ir.expr import Expr

if TYPE_CHECKING:
    from relax_egraph.frontends.onnx.node import Node

Converter: TypeAlias = Callable[["Node"], Expr | Sequence[Expr | None]]
"""Returns the output or outputs of a node; ``None`` for an unsupported output."""

_OPERATORS = Registry[tuple[str, str], Converter]()
"""The converters by domain and name."""

_SIGNATURES: dict[tuple[str, str], Signature] = {}


def converts(
    *names: str, domain: str = "", signature: Signature | None = None
) -> Callable[[Converter], Converter]:
    """Decorator: register the converter of the operators `names` of `domain`, in all versions.

    `signature` is for operators without a schema.
    """
    keys = [(domain, name) for name in names]
    if signature is not None:
        _SIGNATURES.update(dict.fromkeys(keys, signature))
    return _OPERATORS.converts(*keys)


def converter_of(domain: str, name: str) -> Converter | None:
    """The converter of the operator `name`, if there is one."""
    return _OPERATORS.converter_of((domain, name))


def signature_of(domain: str, name: str) -> Signature | None:
    """The signature of an operator without a schema."""
    return _SIGNATURES.get((domain, name))
