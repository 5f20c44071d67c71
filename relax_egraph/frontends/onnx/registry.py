"""Which function makes which operator of ONNX into operators of ours."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.frontends.onnx.signatures import Signature
from relax_egraph.ir.expr import Expr

if TYPE_CHECKING:
    from relax_egraph.frontends.onnx.node import Node

Converter: TypeAlias = Callable[["Node"], Expr | Sequence[Expr | None]]
"""Gives the node's output, or its outputs; ``None`` is one that nobody can ask for."""

_CONVERTERS: dict[tuple[str, str], Converter] = {}
_SIGNATURES: dict[tuple[str, str], Signature] = {}


def converts(
    *names: str, domain: str = "", signature: Signature | None = None
) -> Callable[[Converter], Converter]:
    """The decorated function converts the operators `names` of `domain`, in all versions.

    `signature` is that of operators which ONNX does not describe.
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
    """What converts the operator `name`, if anything does."""
    return _CONVERTERS.get((domain, name))


def signature_of(domain: str, name: str) -> Signature | None:
    """The signature of an operator which ONNX does not describe."""
    return _SIGNATURES.get((domain, name))


def converted() -> frozenset[tuple[str, str]]:
    """Domain and name of each operator that is converted."""
    return frozenset(_CONVERTERS)
