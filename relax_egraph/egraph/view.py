"""The saturated e-graph as plain tables: all that extraction sees.

Three sorts of classes: ``tensor`` (values in memory), ``kernel`` (values inside one kernel) and
``tuple`` (what an operator of several results gives).
A node's `op` is ``leaf`` (a value from outside of the block; `key` indexes `View.leaves`),
``scalar`` (a 0-d constant that a rule made), ``opaque`` (a binding that is kept as it is; `key`
indexes `View.opaque`), an operator's name (``"add"``), ``load`` / ``store`` between tensors and
kernels, ``tuple_get`` (a part of a tuple) or ``whole`` (a tuple, as operand of an opaque binding).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relax_egraph.ir.expr import Attr, Binding, Expr, PrimValue
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo

ClassId: TypeAlias = int
Sort: TypeAlias = Literal["tensor", "kernel", "tuple"]

LEAF, SCALAR, OPAQUE, LOAD, STORE = "leaf", "scalar", "opaque", "load", "store"
TUPLE_GET, WHOLE = "tuple_get", "whole"

Child: TypeAlias = ClassId | tuple[ClassId, ...] | ShapeStructInfo | PrimValue | None
"""An operand: a tensor, tensors, a shape, a scalar of the host, or one that is left out."""


@dataclass(frozen=True, slots=True)
class ENode:
    """One way to make a class's value.

    `children` has one entry for each operand of the operator.  `attrs` are complete, in the
    operator's order.
    """

    op: str
    children: tuple[Child, ...] = ()
    attrs: tuple[tuple[str, Attr], ...] = ()
    key: int = -1
    scalar: float = 0.0

    @property
    def classes(self) -> tuple[ClassId, ...]:
        """The classes among the children."""
        found: list[ClassId] = []
        for child in self.children:
            if isinstance(child, int):
                found.append(child)
            elif isinstance(child, tuple):
                found.extend(child)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class EClass:
    """Nodes that are proven equal.

    `struct_info` is what is known of the value (a kernel class has that of the tensor that it
    would store; of a tuple it says nothing); `is_const`: it depends on constants only, so it
    costs nothing at run time; `scalar`: its value, where it is a known scalar; `narrow`: what a
    constant may be stored as within the caller's tolerance, by dtype and by the axis along which
    elements share a scale.
    """

    sort: Sort
    nodes: tuple[ENode, ...]
    struct_info: TensorStructInfo
    is_const: bool = False
    scalar: float | None = None
    narrow: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """Classes by number; `leaves` and `opaque` are what nodes' keys refer to.

    `roots` are the classes of the block's outputs, then of the bindings that must be kept.
    """

    classes: Mapping[ClassId, EClass]
    roots: tuple[ClassId, ...]
    leaves: tuple[Expr, ...] = ()
    opaque: tuple[Binding, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """How needed classes are made: by one kernel, or by a node as it stands.

    For a kernel, `inputs` are the classes of its inputs and `outputs` of what it writes, in the
    kernel's order.  For a node, `inputs` are its child classes and there is one output.
    """

    how: Kernel | ENode
    inputs: tuple[ClassId, ...]
    outputs: tuple[ClassId, ...]


Program: TypeAlias = tuple[Choice, ...]
"""What extraction chose, in an order in which it can run; each needed class is made once."""
