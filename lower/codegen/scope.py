"""What code is generated with: the function being written, its names, and the lanes at work."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relax_egraph.ir.dtypes import DTYPES, STORED, TABLE, DType, computed
from relax_egraph.lower.codegen.index import Index
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
"""The type of a value of a dtype: that of the dtype it is computed in."""

MEMORY_TYPES: Mapping[str, Type] = {**REGISTER_TYPES, "bool": I8, **dict.fromkeys(STORED, I16)}
"""The type of an element in memory: a ``bool`` is a byte, 0 or 1; of storage types, the bits."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What holds in a whole function: where buffers lie, and their row-major strides.

    `streamed` are those that are passed over once, as `codegen_stream` takes care of.  `status` is
    the address of the ``i32`` that the kernel returns, if there may be no room for buffers.
    """

    f: Function
    symbols: dict[str, Value]
    pointers: dict[Buffer, Value] = field(default_factory=dict[Buffer, Value])
    strides: dict[Buffer, tuple[Index, ...]] = field(
        default_factory=dict[Buffer, tuple[Index, ...]]
    )
    streamed: frozenset[Buffer] = frozenset()
    status: Value | None = None


Known = dict[int, tuple[TirExpr, Index]]
"""Values of expressions already computed, by identity; the expression is held to keep it unique."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A place in a function: variables in scope, how many lanes run, and which of them.

    `mask` is ``None`` where all lanes run.  `guard`, a condition for all lanes or for each, says
    where memory may be read.  `known` holds for one statement.
    """

    frame: Frame
    variables: Mapping[TirVar, Index] = field(default_factory=dict[TirVar, Index])
    lanes: int = 1
    mask: Value | None = None
    guard: Value | None = None
    known: Known = field(default_factory=Known)

    def with_variable(self, var: TirVar, index: Index) -> "Scope":
        """The scope in which `var` is `index`."""
        return replace(self, variables={**self.variables, var: index}, known=dict(self.known))

    def within(self, mask: Value) -> "Scope":
        """The scope whose lanes run only where `mask` is on, too."""
        return replace(self, mask=mask if self.mask is None else self.mask & mask)

    def guarded(self, condition: Value) -> "Scope":
        """The scope in which memory is read only where `condition` holds, too."""
        guard = condition
        if self.guard is not None:
            outer, inner = self.frame.f.match(self.guard, condition)
            guard = outer & inner
        return replace(self, guard=guard, known=dict(self.known))

    def fresh(self) -> "Scope":
        """The scope of a new statement, that may find memory changed."""
        return replace(self, known=dict(self.known))
