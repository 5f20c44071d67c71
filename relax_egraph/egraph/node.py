"""A node: an operator applied to children, with attributes.

The children are class numbers in a view, egglog's values in its tables, values or nodes in the
match of a rule, and terms in a proof.

`op` is ``leaf`` (a value from outside of the block), ``scalar`` (a 0-d constant from a rule),
``opaque`` (a binding that stays unchanged), an operator's name (``"add"``), one of `CALLS` (a call
of a function below the graph), ``load`` / ``store`` between tensors and kernels, ``tuple_get`` (a
field of a tuple) or ``whole`` (a tuple, as operand of an opaque binding).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
    tensor,
)

Sort: TypeAlias = Literal["tensor", "kernel", "tuple"]

LEAF, SCALAR, OPAQUE, LOAD, STORE = "leaf", "scalar", "opaque", "load", "store"
TUPLE_GET, WHOLE = "tuple_get", "whole"

CALLS = ("call_tir", "call_dps_packed", "call_pure_packed")
"""Calls of a loop function or a packed function, whose result is one tensor.

The children are the operands and the shape of the result, the attributes its dtype and the name.
"""

C = TypeVar("C")
D = TypeVar("D")

Child: TypeAlias = C | tuple[C, ...] | ShapeStructInfo | PrimValue | None
"""An operand: a value, several values, a shape, a scalar of the host, or None if omitted."""

Attrs: TypeAlias = tuple[tuple[str, Attr], ...]


@dataclass(frozen=True, slots=True)
class Node(Generic[C]):
    """An operator over values of type `C`.

    `children` has one entry for each operand of the operator.  `attrs` are complete, in the
    operator's order; the attributes of a leaf, a scalar and an opaque binding identify it.
    """

    op: str
    children: tuple[Child[C], ...] = ()
    attrs: Attrs = ()

    @property
    def operands(self) -> tuple[C, ...]:
        """The values among the children, in order."""
        values: list[Any] = []
        child: Any
        for child in self.children:
            kind = type(child)
            if kind is tuple:
                values += child
            elif kind not in _NO_VALUE:
                values.append(child)
        return tuple(values)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of its shapes and of its scalars of the host."""
        infos = [c for c in self.children if isinstance(c, ShapeStructInfo)]
        numbers = [c.struct_info for c in self.children if isinstance(c, PrimValue)]
        return frozenset[str]().union(*map(symbols_of, (*infos, *numbers)))

    def infos(self, of: Callable[[C], StructInfo]) -> tuple[StructInfo | None, ...]:
        """The arguments of the operator's struct-info rule, by the struct infos of values."""
        return tuple([_info(child, of) for child in self.children])

    @property
    def key(self) -> int:
        """The number of a leaf, or of an opaque binding."""
        return cast(int, self.attrs[0][1])

    @property
    def callee(self) -> str:
        """The name of the function that a call calls."""
        return cast(str, self.attrs[0][1])

    @property
    def call_info(self) -> TensorStructInfo:
        """The struct info of the result of a call."""
        shape = cast(ShapeStructInfo, self.children[1])
        return tensor(shape.values, cast(str, self.attrs[1][1]))

    @property
    def scalar(self) -> float:
        """The number that a ``scalar`` is."""
        return cast(float, self.attrs[0][1])

    @property
    def dtype(self) -> str:
        """The dtype of a ``scalar``."""
        return cast(str, self.attrs[1][1])

    def over(self, of: Callable[[C], D]) -> "Node[D]":
        """The node with each of its values mapped by `of`."""
        return Node(self.op, tuple([mapped(child, of) for child in self.children]), self.attrs)


_NO_VALUE = frozenset((ShapeStructInfo, PrimValue, type(None)))


def mapped(child: Any, of: Callable[[Any], D]) -> Child[D]:
    """`child` with its values mapped by `of`; a value must not be a plain tuple."""
    kind = type(child)
    if kind is tuple:
        return tuple(map(of, child))
    return child if kind in _NO_VALUE else of(child)


def _info(child: Any, of: Callable[[Any], StructInfo]) -> StructInfo | None:
    kind = type(child)
    if kind is tuple:
        return TupleStructInfo(tuple(map(of, child)))
    if kind is PrimValue:
        return child.struct_info
    return child if kind in _NO_VALUE else of(child)


def leaf_node(key: int) -> Node[Any]:
    """Value `key` from outside of the block."""
    return Node(LEAF, (), (("i", key),))


def scalar_node(value: float, dtype: str) -> Node[Any]:
    """A constant of rank 0."""
    return Node(SCALAR, (), (("value", value), ("dtype", dtype)))


def call_node(
    op: str, name: str, operands: tuple[C, ...], shape: ShapeStructInfo, dtype: str
) -> Node[C]:
    """The call of function `name` on `operands`, by `op` of `CALLS`."""
    return Node(op, (operands, shape), (("name", name), ("dtype", dtype)))


def opaque_node(key: int, operands: tuple[C, ...]) -> Node[C]:
    """Binding `key`, which reads `operands`."""
    return Node(OPAQUE, operands, (("i", key),))
