"""From which step to which each tensor of a function is needed, and what may refer to it.

Steps are numbered in order of the text, branches one after the other.  Control only ever goes on in
that order, so that a tensor is needed at most from its first step to its last.
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
    """A sequence of bindings, and the binding in it at or inside of which something is."""

    sequence: int
    binding: Var


@dataclass(slots=True, eq=False)
class Tensor:
    """Allocation `number`: its extents and bytes, where it stands, and the steps that need it.

    `binder` is the binding that makes its symbols known, ``None`` if parameters do.  It is needed
    from the step that first mentions it, to `end`.  One that `leaves` may be needed after the
    function is done, or by who knows whom.
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
        """The sequence that it is allocated in."""
        return self.places[-1].sequence


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of a loop function: the tensors that each operand may refer to."""

    step: int
    function: PrimFunc
    operands: tuple[Roots, ...]


@dataclass(frozen=True, slots=True)
class Meeting:
    """The end of an ``If``, whose branches begin at steps `begin`: what the result of each is."""

    step: int
    begin: tuple[int, int]
    results: tuple[Roots, Roots]


@dataclass(slots=True)
class Lifetimes:
    """What is known of one function.

    `steps` say what happens, `unknown` are the allocations whose size is only known in the run,
    `kept` the numbers of the parameters that may be kept, or returned.
    """

    tensors: dict[Var, Tensor] = field(default_factory=dict[Var, Tensor])
    events: list[KernelCall | Meeting] = field(default_factory=list[KernelCall | Meeting])
    steps: list[str] = field(default_factory=list[str])
    unknown: list[Var] = field(default_factory=list[Var])
    kept: set[int] = field(default_factory=set[int])
    returned: set[int] = field(default_factory=set[int])
