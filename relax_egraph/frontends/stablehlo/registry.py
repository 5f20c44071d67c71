"""The registry of converters of operations, custom calls and composites."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_egraph.frontends.building.registry import Registry
from relax_egraph.ir.expr import Expr

if TYPE_CHECKING:
    from relax_egraph.frontends.stablehlo.node import Node
    from relax_egraph.frontends.stablehlo.values import Value

Result: TypeAlias = "Expr | Value | Sequence[Expr | Value]"

Converter: TypeAlias = Callable[["Node"], Result]
"""Returns the result of an operation, or its results."""

_OPERATIONS = Registry[str, Converter]()
"""The converters by names: an operation is ``stablehlo.add``, a custom call ``@Sharding``.

The converter of ``chlo.erf`` is also that of the composite of that name.
"""

converts = _OPERATIONS.converts
converter_of = _OPERATIONS.converter_of
