"""Views: e-graphs as plain tables, independent of egglog; the input of extraction.

Classes have three sorts: ``tensor`` (values in memory), ``kernel`` (values inside one kernel) and
``tuple`` (the result of an operator with several results).
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
"""A node over classes: one way to compute the value of a class."""


@dataclass(frozen=True, slots=True)
class EClass:
    """Nodes that are proven equal.

    `struct_info` describes the value (for a kernel class, the tensor that it would store; it is
    empty for a tuple).  `is_const`: the value depends on constants only, and costs nothing at run
    time.  `scalar` is the value of a known scalar.  `narrow` are the formats in which a constant
    can be stored within the caller's tolerance: the dtype, and the axis along which elements share
    a scale.  `magnitude` bounds the elements, none of which is NaN, as ``magnitude-of`` does.
    `elements_of` is the class whose elements a match_cast passes on.  `has_reciprocal`: no element
    of a constant divisor is close to 0, or infinite.
    """

    sort: Sort
    nodes: tuple[ENode, ...]
    struct_info: TensorStructInfo
    is_const: bool = False
    scalar: float | None = None
    narrow: tuple[tuple[str, int], ...] = ()
    magnitude: float | None = None
    elements_of: ClassId | None = None
    has_reciprocal: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Classes by number; keys of nodes are indices into `leaves` and `opaque`.

    `roots` are the classes of the bindings that must run, and of the block's outputs.
    """

    classes: Mapping[ClassId, EClass]
    roots: tuple[ClassId, ...]
    leaves: tuple[Expr, ...] = ()
    opaque: tuple[Binding, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen computation of one or more classes: a kernel, or a single node.

    For a kernel, `inputs` and `outputs` are the classes that it reads and writes, in its order.
    For a node, `inputs` are its child classes, and there is one output.
    """

    how: Kernel | Node[ClassId]
    inputs: tuple[ClassId, ...]
    outputs: tuple[ClassId, ...]


Program: TypeAlias = tuple[Choice, ...]
"""The choices of extraction in topological order; each needed class is computed once."""
