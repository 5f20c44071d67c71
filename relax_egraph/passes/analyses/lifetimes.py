"""Lifetimes of the tensors of a function: first and last step, and the values that alias them.

Steps are numbered in textual order, branches one after the other.  Control flow follows that order,
so a tensor is needed at most from its first step to its last.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Var
from relax_egraph.ir.polynomial import Polynomial
from relax_egraph.tir.stmt import PrimFunc

Roots: TypeAlias = frozenset[Var]
"""The tensors, as the variables of their allocations, that a value may refer to."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position: a sequence of bindings and the number of a binding in it."""

    sequence: int
    binding: Var


@dataclass(slots=True, eq=False)
class Tensor:
    """Allocation `number`: its extents and bytes, its position, and the steps that need it.

    `binder` is the binding that binds its symbols, ``None`` if parameters do.  The tensor is needed
    from the first step that uses it to `end`.  A tensor that `leaves` escapes: it may be needed
    after the function returns.
    """

    number: int
    var: Var
    shape: tuple[Dim, ...]
    dtype: str
    size: Polynomial
    places: tuple[Place, ...]
    binder: Place | None
    begin: int
    end: int = -1
    leaves: bool = False

    @property
    def sequence(self) -> int:
        """The sequence that allocates the tensor."""
        return self.places[-1].sequence


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of a loop function: the tensors that each operand may alias."""

    step: int
    function: PrimFunc
    operands: tuple[Roots, ...]


@dataclass(frozen=True, slots=True)
class Meeting:
    """The end of an ``If``: the steps at which its branches begin, and the result of each."""

    step: int
    begin: tuple[int, int]
    results: tuple[Roots, Roots]


@dataclass(slots=True)
class Lifetimes:
    """The tensors and steps of one function.

    `steps` are the titles of the steps, `unknown` the allocations whose size is only known at run
    time, `kept` and `returned` the numbers of the parameters that may be kept, or returned.
    """

    tensors: dict[Var, Tensor] = field(default_factory=dict[Var, Tensor])
    events: list[KernelCall | Meeting] = field(default_factory=list[KernelCall | Meeting])
    steps: list[str] = field(default_factory=list[str])
    unknown: list[Var] = field(default_factory=list[Var])
    kept: set[int] = field(default_factory=set[int])
    returned: set[int] = field(default_factory=set[int])
