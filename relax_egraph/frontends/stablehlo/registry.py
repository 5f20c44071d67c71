"""The registry of converters of operations, custom calls and composites."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.ir.expr import Expr

if TYPE_CHECKING:
    from relax_egraph.frontends.stablehlo.node import Node
    from relax_egraph.frontends.stablehlo.values import Value

Result: TypeAlias = "Expr | Value | Sequence[Expr | Value]"

Converter: TypeAlias = Callable[["Node"], Result]
"""Returns the result of an operation, or its results."""

_CONVERTERS: dict[str, Converter] = {}


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Decorator: register the converter of `names`.

    An operation is named ``stablehlo.add``, a custom call ``@Sharding``; the converter of
    ``chlo.erf`` is also that of the composite of that name.
    """

    def define(converter: Converter) -> Converter:
        for name in names:
            if name in _CONVERTERS:
                raise ValueError(f"two functions convert {name}")
            _CONVERTERS[name] = converter
        return converter

    return define


def converter_of(name: str) -> Converter | None:
    """The converter of `name`, if there is one."""
    return _CONVERTERS.get(name)


def converted() -> dict[str, Converter]:
    """The converter of each supported operation, by name."""
    return dict(sorted(_CONVERTERS.items()))
