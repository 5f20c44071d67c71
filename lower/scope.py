"""What code is generated with: the function being written, its names, and the lanes at work."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relax_egraph.lower.emitter import Function
from relax_egraph.lower.index import Index
from relax_egraph.lower.module_text import F32, F64, I1, I8, I16, I32, I64, Type
from relax_egraph.lower.value import Value
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar

REGISTER_TYPES: Mapping[str, Type] = {
    "bool": I1,
    **{"int8": I8, "int16": I16, "int32": I32, "int64": I64, "uint8": I8},
    **{"float32": F32, "float64": F64},
}
"""The type of a value of a dtype."""

MEMORY_TYPES: Mapping[str, Type] = {**REGISTER_TYPES, "bool": I8}
"""The type of an element in memory: a ``bool`` is a byte, 0 or 1."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What holds in a whole function: where buffers lie, and their row-major strides."""

    f: Function
    symbols: dict[str, Value]
    pointers: dict[Buffer, Value] = field(default_factory=dict[Buffer, Value])
    strides: dict[Buffer, tuple[Index, ...]] = field(
        default_factory=dict[Buffer, tuple[Index, ...]]
    )


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
