"""The registry of converters of ATen operators."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.frontends.building.complex_parts import Parts
from relax_egraph.frontends.building.registry import Registry
from relax_egraph.ir.expr import Expr

if TYPE_CHECKING:
    from relax_egraph.frontends.torch.node import Node

Result: TypeAlias = Expr | Parts | Sequence[Expr | Parts | None]

Converter: TypeAlias = Callable[["Node"], Result]
"""Returns the result of a node, or its results; ``None`` for one that is not supported."""

_OVERLOADS = Registry[str, Converter]()
"""The converters of overloads, which are named ``aten.add.Tensor``."""

_OF_COMPLEX = Registry[str, Converter]()
"""The converters of overloads where an argument or a result is of complex numbers."""

converts_complex = _OF_COMPLEX.converts
complex_converter_of = _OF_COMPLEX.converter_of
complex_converted = _OF_COMPLEX.converted

converts = _OVERLOADS.converts
converter_of = _OVERLOADS.converter_of
converted = _OVERLOADS.converted
