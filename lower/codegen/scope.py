"""The context of code generation: the function being written, its names, and active lanes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relax_egraph.ir.dtypes import DTYPES, STORED, TABLE, DType, computed
from relax_egraph.lower.codegen.index import Index, Scalar
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, F64, I1, I8, I16, Type
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar

_FLOATS = {32: F32, 64: F64}


def _register_type(dtype: DType) -> Type:
    if dtype.kind == "bool":
        return I1
    return _FLOATS[dtype.bits] if dtype.kind == "float" else Type(f"i{dtype.bits}")


REGISTER_TYPES: Mapping[str, Type] = {
    name: _register_type(TABLE[computed(name)]) for name in DTYPES
}
"""The type of a value in a register: that of the dtype it is computed in."""

MEMORY_TYPES: Mapping[str, Type] = {**REGISTER_TYPES, "bool": I8, **dict.fromkeys(STORED, I16)}
"""The type of an element in memory: ``bool`` is a byte of 0 or 1, storage types are their bits."""


VECTOR = 64
"""The bytes of the widest vector."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The state of a whole function: the addresses of its buffers and their row-major strides.

    `on_stack` has the elements of buffers on the stack, behind which is room for a vector.
    `streamed` are buffers that are traversed once (see `stream`).  `status` is the address of the
    ``i32`` that the kernel returns, if an allocation of buffers may fail.
    """

    f: Function
    symbols: dict[str, Value]
    pointers: dict[Buffer, Value] = field(default_factory=dict[Buffer, Value])
    strides: dict[Buffer, tuple[Index, ...]] = field(
        default_factory=dict[Buffer, tuple[Index, ...]]
    )
    on_stack: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    streamed: frozenset[Buffer] = frozenset()
    status: Value | None = None


Known = dict[int, tuple[TirExpr, Index]]
"""Values of computed expressions, by identity; an entry keeps its expression alive."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A point in a function: the variables in scope, the number of lanes, and the active ones.

    `mask` is ``None`` if all lanes are active.  `first` is their number if they are the first ones,
    by a mask that nothing restricts further.  `guard`, a condition for all lanes or for each,
    states where memory may be read.  `known` is valid for one statement.
    """

    frame: Frame
    variables: Mapping[TirVar, Index] = field(default_factory=dict[TirVar, Index])
    lanes: int = 1
    mask: Value | None = None
    first: Scalar | None = None
    guard: Value | None = None
    known: Known = field(default_factory=Known)

    def with_variable(self, var: TirVar, index: Index) -> "Scope":
        """The scope in which `var` is `index`."""
        return replace(self, variables={**self.variables, var: index}, known=dict(self.known))

    def within(self, mask: Value) -> "Scope":
        """The scope whose lanes are restricted to `mask`."""
        return replace(self, mask=mask if self.mask is None else self.mask & mask, first=None)

    def of_first(self, count: Scalar, mask: Value) -> "Scope":
        """The scope of the first `count` lanes, which are those of `mask`."""
        return replace(self.within(mask), first=count if self.mask is None else None)

    def guarded(self, condition: Value) -> "Scope":
        """The scope whose reads of memory are restricted to `condition`."""
        guard = condition
        if self.guard is not None:
            outer, inner = self.frame.f.match(self.guard, condition)
            guard = outer & inner
        return replace(self, guard=guard, known=dict(self.known))

    def fresh(self) -> "Scope":
        """The scope of a new statement, which may find memory changed."""
        return replace(self, known=dict(self.known))
