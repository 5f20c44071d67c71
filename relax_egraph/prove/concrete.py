"""Values of a general instance in numpy, for chosen extents and numbers."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.prove.functions import CONSTANTS
from relax_egraph.prove.nodes import (
    Leaf,
    Mapped,
    Part,
    Result,
    Uniform,
    Value,
    dtype_of,
    shape_of,
)
from relax_egraph.prove.polynomial import Extreme, Polynomial, Quotient, Remainder
from relax_egraph.prove.sums import Applied, Counted, Factor, Sum
from relax_egraph.verify.values.inputs import Array, Kind, random_array


class Unclear(Exception):
    """What a symbol, a number or an operator is in numpy is not known."""


@dataclass
class Concrete:
    """Values for all `extents`, and for `numbers` of the rule, by the texts of their symbols.

    Operands are random, with elements of a `kind`.
    """

    extents: Mapping[str, int]
    numbers: Mapping[str, float]
    kind: Kind
    random: np.random.Generator
    known: dict[str, Any] = field(default_factory=dict[str, Any])

    def of(self, value: Value) -> Any:
        """The array of a value, or the arrays of a tuple; raises `Unclear`."""
        if value.key not in self.known:
            with np.errstate(all="ignore"):
                self.known[value.key] = self._made(value)
        return self.known[value.key]

    def _made(self, value: Value) -> Any:
        match value:
            case Leaf():
                return random_array(self.random, self.shape(value), dtype_of(value), self.kind)
            case Uniform(number):
                return np.full(self.shape(value), self.number(number)).astype(dtype_of(value))
            case Part(whole, number):
                return self.of(whole)[number]
            case Mapped():
                return self._mapped(value)
            case Result(op, operands, attrs):
                if op.name not in REFERENCE:
                    raise Unclear(op.name)
                named = {name: self.attribute(a) for name, a in attrs.items()}
                try:
                    return REFERENCE[op.name](*map(self.operand, operands), **named)
                except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as no:
                    raise Unclear(f"{op}: {no}") from None

    def _mapped(self, value: Mapped) -> Array:
        """An unknown function of elements: one that has no laws of use to a rule."""
        operands = [self.of(v) for v in value.operands]
        dtype = dtype_of(value)
        if value.axes is not None or not is_float(dtype):
            raise Unclear(value.function)
        result = np.exp(operands[0] * 0.5)
        for k, operand in enumerate(operands[1:], 2):
            result = result - k * operand
        return np.asarray(result).astype(dtype)

    def shape(self, value: Value) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(map(self.dim, shape_of(value)))

    def dim(self, dim: dims.Dim) -> int:
        """An extent."""
        try:
            return dims.evaluate(dim, self.extents)
        except (KeyError, TypeError, ValueError):
            raise Unclear(str(dim)) from None

    def operand(self, value: Any) -> Any:
        """An operand of an operator."""
        match value:
            case Leaf() | Uniform() | Result() | Mapped() | Part():
                return self.of(value)
            case PrimValue():
                return self.attribute(value.value)
            case tuple():
                parts: tuple[Any, ...] = value
                return tuple(map(self.operand, parts))
            case _:
                return self.attribute(value)

    def attribute(self, value: Any) -> Any:
        """An attribute of an operator."""
        match value:
            case tuple():
                parts: tuple[Any, ...] = value
                return tuple(map(self.attribute, parts))
            case sympy.Expr():
                return self.dim(value)
            case Sum():
                return self.number(value)
            case _:
                return value

    def number(self, a: Sum) -> float:
        """A number of a rule."""
        total = 0.0
        for t in a.terms:
            if t.binders or t.where:
                raise Unclear(a.key)
            try:
                total += float(t.coefficient) * math.prod(map(self._factor, t.factors))
            except (ArithmeticError, ValueError):
                raise Unclear(a.key) from None
        return total

    def _factor(self, f: Factor) -> float:
        match f:
            case Counted(value):
                return float(self.polynomial(value))
            case Applied(name, ()) if name in self.numbers:
                return self.numbers[name]
            case Applied("inf" | "-inf" | "nan" as name, ()):
                return float(name)
            case Applied(name, ()) if name in CONSTANTS:
                return CONSTANTS[name]
            case Applied(name, (a,)) if name in _FUNCTIONS:
                return _FUNCTIONS[name](self.number(a))
            case _:
                raise Unclear(f.key)

    def polynomial(self, p: Polynomial) -> int:
        """An extent or an index."""
        return sum(
            c * math.prod(self._variable(v) for v in monomial) for monomial, c in p.terms.items()
        )

    def _variable(self, v: Any) -> int:
        match v:
            case str() if v in self.extents:
                return self.extents[v]
            case Quotient(a, b):
                return self.polynomial(a) // self.polynomial(b)
            case Remainder(a, b):
                return self.polynomial(a) % self.polynomial(b)
            case Extreme(greater, a, b):
                return (max if greater else min)(self.polynomial(a), self.polynomial(b))
            case _:
                raise Unclear(str(v))


_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "inverse": lambda x: 1 / x,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
}
"""Functions of numbers of rules."""
