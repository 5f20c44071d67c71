"""The saturated e-graph as plain tables: all that extraction sees.

Three sorts of classes: ``tensor`` (values in memory), ``kernel`` (values inside one kernel) and
``tuple`` (what an operator of several results gives).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.node import Node, Sort
from relax_egraph.ir.expr import Binding, Expr
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.struct_info import TensorStructInfo

ClassId: TypeAlias = int

ENode: TypeAlias = Node[ClassId]
"""One way to make a class's value."""


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

    how: Kernel | Node[ClassId]
    inputs: tuple[ClassId, ...]
    outputs: tuple[ClassId, ...]


Program: TypeAlias = tuple[Choice, ...]
"""What extraction chose, in an order in which it can run; each needed class is made once."""
