"""The registry of converters of ONNX operators."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.frontends.onnx.signatures import Signature
from relax_egraph.ir.expr import Expr

if TYPE_CHECKING:
    from relax_egraph.frontends.onnx.node import Node

Converter: TypeAlias = Callable[["Node"], Expr | Sequence[Expr | None]]
"""Returns the output or outputs of a node; ``None`` for an unsupported output."""

_CONVERTERS: dict[tuple[str, str], Converter] = {}
_SIGNATURES: dict[tuple[str, str], Signature] = {}


def converts(
    *names: str, domain: str = "", signature: Signature | None = None
) -> Callable[[Converter], Converter]:
    """Decorator: register the converter of the operators `names` of `domain`, in all versions.

    `signature` is for operators without a schema.
    """

    def define(converter: Converter) -> Converter:
        for name in names:
            if (domain, name) in _CONVERTERS:
                raise ValueError(f"two functions convert {domain}.{name}")
            _CONVERTERS[domain, name] = converter
            if signature is not None:
                _SIGNATURES[domain, name] = signature
        return converter

    return define


def converter_of(domain: str, name: str) -> Converter | None:
    """The converter of the operator `name`, if there is one."""
    return _CONVERTERS.get((domain, name))


def signature_of(domain: str, name: str) -> Signature | None:
    """The signature of an operator without a schema."""
    return _SIGNATURES.get((domain, name))


def converted() -> frozenset[tuple[str, str]]:
    """Domain and name of each supported operator."""
    return frozenset(_CONVERTERS)
