"""A program as a shared graph of terms: what an e-graph's node says, over terms for classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.view import Sort
from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.struct_info import ShapeStructInfo

Operand: TypeAlias = "Term | tuple[Term, ...] | ShapeStructInfo | PrimValue | None"
"""As `view.Child`, with terms in place of classes."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One operator over terms; fields are those of `view.ENode`.

    Equal terms are one object, by hash-consing, so they are compared by identity.
    """

    op: str
    children: tuple[Operand, ...] = ()
    attrs: tuple[tuple[str, Attr], ...] = ()
    key: int = -1
    scalar: float = 0.0
    sort: Sort = "tensor"

    @property
    def terms(self) -> Iterator["Term"]:
        """The terms among the children, in order."""
        for child in self.children:
            if isinstance(child, Term):
                yield child
            elif isinstance(child, tuple):
                yield from child
