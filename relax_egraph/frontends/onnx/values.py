"""The values of names in a graph, and their scopes."""

from dataclasses import dataclass, field

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.dim_tensors import tensor_of
from relax_egraph.frontends.building.elements import Elements, of_array
from relax_egraph.frontends.building.names import identifier
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr
from relax_egraph.ir.names import unused
from relax_egraph.ir.struct_info import TensorStructInfo

_UNKNOWN = TensorStructInfo()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor, sequence or optional of the graph.

    At least one is known: the expression, or the symbolic elements of a small tensor.  `item` is
    the struct info of the tensors in a sequence that is not a tuple.
    """

    expr: Expr | None = None
    elements: Elements | None = None
    item: TensorStructInfo = _UNKNOWN


def of_expr(expr: Expr) -> Value:
    """The value of `expr`, with its elements if it is a small constant."""
    return Value(expr, of_array(expr.data) if isinstance(expr, Constant) else None)


MOST_AXES = 64


def check_rank(value: Value) -> None:
    """Raise `ModelError` for a tensor whose rank exceeds that of arrays."""
    info = value.expr and value.expr.struct_info
    if isinstance(info, TensorStructInfo) and info.ndim > MOST_AXES:
        raise ModelError(f"a tensor of rank {info.ndim}: needs no more than {MOST_AXES} axes")


@dataclass(slots=True)
class Scope:
    """The names in scope in a graph, and their values in the function under construction.

    Symbolic elements become a tensor at first use, once in each function.
    """

    bb: BlockBuilder
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    _tensors: dict[Value, Expr] = field(default_factory=dict[Value, Expr])

    def expr(self, value: Value) -> Expr:
        """`value` as an expression."""
        if value.expr is not None:
            return value.expr
        if value not in self._tensors:
            assert value.elements is not None
            self._tensors[value] = tensor_of(self.bb, value.elements)
        return self._tensors[value]


@dataclass(slots=True)
class Symbols:
    """The symbols of a model: one for each named dimension, and new ones for unnamed dimensions.

    `plain` are the names that are alone a dimension of an input.  A name such as ``past + s`` is
    their sum if inputs bind its parts; otherwise it is a symbol.
    """

    plain: frozenset[str]
    _dims: dict[str, Dim] = field(default_factory=dict[str, Dim])
    _taken: set[str] = field(default_factory=set[str])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _computed: set[str] = field(default_factory=set[str])

    def named(self, name: str) -> Dim:
        """The dimension with the name `name` in the model."""
        if name not in self._dims:
            self._dims[name] = self._expression(name) or self.fresh(name)
        return self._dims[name]

    def fresh(self, name: str) -> Dim:
        """A new symbol, named after `name`."""
        return dims.symbol(unused(identifier(name), self._taken, self._numbers))

    def computed(self, name: str) -> Dim:
        """A new symbol for an extent that is computed at run time."""
        dim = self.fresh(name)
        self._computed.add(dims.text(dim))
        return dim

    def is_computed(self, dim: Dim) -> bool:
        """Whether `dim` is a symbol from `computed`."""
        return not isinstance(dim, int) and dims.text(dim) in self._computed

    def _expression(self, name: str) -> Dim | None:
        if name in self.plain:
            return None
        try:
            dim = dims.parse(name)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        parts = dims.symbols(dim)
        if not parts or not parts <= self.plain:
            return None
        return dims.substitute(dim, {part: self.named(part) for part in parts})
