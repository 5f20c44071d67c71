"""The registry of converters of ATen operators."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.ir.expr import Expr

if TYPE_CHECKING:
    from relax_egraph.frontends.torch.node import Node

Result: TypeAlias = Expr | Sequence[Expr | None]

Converter: TypeAlias = Callable[["Node"], Result]
"""Returns the result of a node, or its results; ``None`` for one that is not supported."""

_CONVERTERS: dict[str, Converter] = {}


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Decorator: register the converter of the overloads `names`, such as ``aten.add.Tensor``."""

    def define(converter: Converter) -> Converter:
        for name in names:
            if name in _CONVERTERS:
                raise ValueError(f"two functions convert {name}")
            _CONVERTERS[name] = converter
        return converter

    return define


def converter_of(name: str) -> Converter | None:
    """The converter of the overload `name`, if there is one."""
    return _CONVERTERS.get(name)


def converted() -> dict[str, Converter]:
    """The converter of each supported overload, by name."""
    return dict(sorted(_CONVERTERS.items()))
