"""A node of a graph: the interface of the converters of operators."""

from dataclasses import dataclass
from functools import reduce

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import Builder, dtype_of, info_of
from relax_egraph.frontends.building.elements import Elements
from relax_egraph.frontends.building.names import identifier
from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.frame import Frame
from relax_egraph.frontends.onnx.values import Scope, Value, check_rank
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import common
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)


@dataclass(frozen=True, slots=True)
class Node(Builder):
    """A node: operator, attributes, operands, and the frame in which it is converted.

    `version` is the opset that introduced the form of the operator in use.  An absent operand is
    ``None``; `outputs` has the empty name for an unused output.  A node that cannot be converted
    raises `ModelError` with the reason.
    """

    op: str
    version: int
    attrs: Attributes
    operands: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    frame: Frame

    @property
    def scope(self) -> Scope:
        """The scope of the node."""
        return self.frame.scope

    # --- operands ---------------------------------------------------------------------

    def has(self, place: int) -> bool:
        """Whether operand `place` is present."""
        return place < len(self.operands) and self.operands[place] is not None

    def __getitem__(self, place: int) -> Expr:
        """Operand `place`, which must be present."""
        value = self.operands[place] if place < len(self.operands) else None
        if value is None:
            raise ModelError(f"it has no operand {place}")
        return self.scope.expr(value)

    def get(self, place: int) -> Expr | None:
        """Operand `place`, if it is present."""
        return self[place] if self.has(place) else None

    def all(self) -> list[Expr]:
        """All operands, which must be present."""
        return [self[place] for place in range(len(self.operands))]

    def info(self, place: int) -> TensorStructInfo:
        """The struct info of operand `place`, a tensor."""
        return info_of(self[place])

    def dtype(self, place: int) -> str:
        """The dtype of operand `place`."""
        return dtype_of(self[place])

    def item(self, place: int) -> TensorStructInfo:
        """The struct info of the tensors in operand `place`, a sequence."""
        value = self.operands[place]
        return TensorStructInfo() if value is None else item_of(value, self[place].struct_info)

    def rank(self, place: int) -> int:
        """The rank of operand `place`; raises `ModelError` if it is unknown."""
        rank = self.info(place).ndim
        if rank < 0:
            raise ModelError(f"the rank of operand {place} is not known")
        return rank

    def shape(self, place: int) -> tuple[Dim, ...]:
        """The dimensions of operand `place`; raises `ModelError` if they are unknown."""
        shape = self.info(place).dims
        if shape is None:
            raise ModelError(f"the shape of operand {place} is not known")
        return shape

    def axis(self, name: str = "axis", place: int = 0, *, rank: int | None = None) -> int:
        """The attribute `name` as a nonnegative axis of operand `place`, or of any `rank`."""
        return self.normalized(self.attrs.integer(name), self.rank(place) if rank is None else rank)

    def normalized(self, axis: int, rank: int) -> int:
        """`axis`, which may count from the end, as a nonnegative number."""
        if not -rank <= axis < max(rank, 1):
            raise ModelError(f"axis {axis} of a tensor of rank {rank}")
        return axis % max(rank, 1)

    # --- operands with known elements -------------------------------------------------

    def elements(self, place: int) -> Elements | None:
        """The elements of operand `place` as dimensions, if known."""
        value = self.operands[place] if place < len(self.operands) else None
        return None if value is None else value.elements

    def integers(self, place: int) -> tuple[int, ...] | None:
        """The elements of operand `place` as numbers, if known and without symbols."""
        elements = self.elements(place)
        numbers = None if elements is None else elements.concrete
        return None if numbers is None else tuple(int(n) for n in numbers.reshape(-1))

    def constant(self, place: int) -> Constant | None:
        """Operand `place`, if it is a constant."""
        operand = self.get(place)
        return operand if isinstance(operand, Constant) else None

    def as_shape(self, place: int) -> Expr:
        """Operand `place`, a tensor of extents, as a shape, known or computed at run time."""
        elements = self.elements(place)
        if elements is not None and all(dims.prove_ge(e, 0) for e in elements.dims):
            return ShapeExpr(elements.dims)
        return self.emit("tensor_to_shape", self[place])

    def extents(self, place: int, count: int) -> tuple[Dim, ...] | None:
        """The `count` nonnegative elements of operand `place`: symbols if computed at run time.

        ``None`` if it is not known to have `count` elements.
        """
        known = self.elements(place)
        if known is not None and all(dims.prove_ge(e, 0) for e in known.dims):
            return known.dims if len(known.dims) == count else None
        return self.extents_of(self[place], count)

    def extents_of(self, numbers: Expr, count: int) -> tuple[Dim, ...] | None:
        """Symbols for the `count` elements of a tensor that is computed at run time.

        Negative elements are refused at run time.  ``None`` if the number of elements is not known.
        """
        if info_of(numbers).dims != (count,):
            return None
        name = identifier(f"{self._hint()}_by")
        found = tuple(self.frame.model.symbols.computed(name) for _ in range(count))
        shape = self.emit("tensor_to_shape", numbers)
        self.scope.bb.emit_match_cast(shape, ShapeStructInfo(found, count), name)
        return found

    # --- what it becomes --------------------------------------------------------------

    def bind(self, value: Expr) -> Expr:
        """`value` bound to a variable; unknown extents get symbols."""
        return self._with_symbols(self.scope.bb.emit(value, self._hint()))

    def _hint(self) -> str:
        return identifier(next(filter(None, self.outputs), self.op))

    def _with_symbols(self, value: Expr) -> Expr:
        """`value`, with symbols as extents where only its rank is known."""
        info = value.struct_info
        check_rank(Value(value))
        if not isinstance(info, TensorStructInfo) or info.dims is not None or info.ndim < 0:
            return value
        name = self._hint()
        shape = tuple(
            self.frame.model.symbols.computed(f"{name}_{axis}") for axis in range(info.ndim)
        )
        return self.scope.bb.emit_match_cast(value, tensor(shape, info.dtype), name)


def item_of(sequence: Value, info: StructInfo) -> TensorStructInfo:
    """The struct info of the tensors in `sequence`, whose struct info is `info`."""
    if not isinstance(info, TupleStructInfo) or not info.fields:
        return sequence.item
    first, *others = info.fields
    kind = reduce(common, others, first)
    return kind if isinstance(kind, TensorStructInfo) else sequence.item
