"""Symbolic integers of torch as dimensions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy
import torch

from relax_egraph.errors import ModelError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr
from relax_egraph.ir.names import unused

_FUNCTIONS: Mapping[str, Callable[..., Dim]] = {
    "FloorDiv": dims.floordiv,
    "CleanDiv": dims.floordiv,
    "Mod": dims.mod,
    "PythonMod": dims.mod,
    "ModularIndexing": lambda a, b, c: dims.mod(dims.floordiv(a, b), c),
    "Max": dims.maximum,
    "Min": dims.minimum,
    "Identity": lambda a: a,
}
"""Functions of torch's expressions, by the names of their classes."""

_EXACT = 2**20
"""Terms of fractions by which products of sizes are exact in float64."""


@dataclass(slots=True)
class Symbols:
    """The symbols of a program: torch's ``s77`` by the name that the user gave it, if any.

    `numbers` has tensors for the symbols of elements that the program reads and that are no sizes:
    they may be negative, or floats.  `sizes` has symbols for sizes that the run computes, because
    dimensions have no such functions.
    """

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    numbers: dict[str, Expr] = field(default_factory=dict[str, Expr])
    sizes: dict[Any, Dim] = field(default_factory=dict[Any, Dim])
    _dims: dict[str, Dim] = field(default_factory=dict[str, Dim])
    _taken: set[str] = field(default_factory=set[str])

    def dim(self, size: "int | torch.SymInt") -> Dim:
        """`size` as a dimension; raises `ModelError` for functions that dimensions do not have."""
        return size if isinstance(size, int) else self.dim_of(size.node.expr)

    def are_numbers(self, value: "torch.SymInt") -> bool:
        """Whether `value` is computed of elements that may be negative."""
        return any(symbol.name in self.numbers for symbol in value.node.expr.free_symbols)

    def shape(self, value: torch.Tensor) -> tuple[Dim, ...]:
        """The shape of `value`."""
        return tuple(self.dim(size) for size in value.shape)

    def symbol(self, name: str) -> Dim:
        """The dimension that is torch's symbol `name`."""
        if name not in self._dims:
            self._dims[name] = dims.symbol(unused(self.names.get(name, name), self._taken))
        return self._dims[name]

    def new(self, name: str) -> Dim:
        """A symbol for a size that torch has no symbol for."""
        return dims.symbol(unused(name, self._taken))

    def dim_of(self, expr: Any) -> Dim:
        """An expression of torch as a dimension."""
        if expr in self.sizes:
            return self.sizes[expr]
        if isinstance(expr, sympy.Symbol):
            if expr.name in self.numbers:
                needed = f"to be a size it needs torch._check({expr.name} >= 0)"
                raise ModelError(f"the number {expr.name} may be negative, {needed}")
            return self.symbol(expr.name)
        if expr.is_Integer:
            return int(expr)
        if type(expr).__name__ in ("TruncToInt", "FloorToInt"):
            return self._scaled(expr.args[0])
        operands = [self.dim_of(a) for a in expr.args]
        if isinstance(expr, sympy.Add):
            return reduce(dims.add, operands)
        if isinstance(expr, sympy.Mul):
            return reduce(dims.mul, operands)
        if isinstance(expr, sympy.Pow) and isinstance(operands[1], int) and operands[1] > 0:
            return reduce(dims.mul, operands[:1] * operands[1])
        function = _FUNCTIONS.get(type(expr).__name__)
        if function is None:
            raise ModelError(f"the size {expr} is not a function that dimensions have")
        return function(*operands)

    def _scaled(self, product: Any) -> Dim:
        """The floor of a float times a size, where the product is exact; sizes are nonnegative."""
        factor, size = product.as_coeff_Mul()
        scale = Fraction(float(factor))
        if scale.denominator > _EXACT or scale.numerator > _EXACT or scale < 0:
            raise ModelError(f"the size ⌊{product}⌋ depends on how floats are rounded")
        extent = self.dim_of(size.args[0] if type(size).__name__ == "ToFloat" else size)
        return dims.floordiv(dims.mul(extent, scale.numerator), scale.denominator)
