"""The values of a program, and the scope in which they are known."""

from dataclasses import dataclass, field

from jaxlib.mlir import ir

from relax_egraph.frontends.building.dim_tensors import tensor_of
from relax_egraph.frontends.building.elements import Elements, of_array
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Constant, Expr


class Poisoned(Exception):
    """An operation reads a value that could not be converted."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor: its expression, or the symbolic elements of a small one; or both."""

    expr: Expr | None = None
    elements: Elements | None = None


def of_expr(expr: Expr) -> Value:
    """The value of `expr`, with its elements if it is a small constant."""
    return Value(expr, of_array(expr.data) if isinstance(expr, Constant) else None)


@dataclass(slots=True)
class Scope:
    """The values in scope, in the function under construction.

    Symbolic elements become a tensor at first use, once in each function.  In a scope that is
    `lifted`, operations on scalars are applied to tensors, element by element.
    """

    bb: BlockBuilder
    values: dict[ir.Value, Value] = field(default_factory=dict[ir.Value, Value])
    tensors: dict[Value, Expr] = field(default_factory=dict[Value, Expr])
    lifted: bool = False

    def __getitem__(self, name: ir.Value) -> Value:
        """The value `name`; raises `Poisoned` if it could not be converted."""
        if name not in self.values:
            raise Poisoned
        return self.values[name]

    def expr(self, value: Value) -> Expr:
        """`value` as an expression."""
        if value.expr is not None:
            return value.expr
        if value not in self.tensors:
            assert value.elements is not None
            self.tensors[value] = tensor_of(self.bb, value.elements)
        return self.tensors[value]

    def called(self) -> "Scope":
        """An empty scope for the body of a function that is inlined."""
        return Scope(self.bb, {}, self.tensors, self.lifted)

    def nested(self, *, lifted: bool = False) -> "Scope":
        """The scope of a region that is converted where it is."""
        return Scope(self.bb, dict(self.values), self.tensors, self.lifted or lifted)
