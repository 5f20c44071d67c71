"""A program as a shared graph of terms: what an e-graph's node says, over terms for classes."""

from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from relax_egraph.egraph.view import Sort
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.struct_info import ShapeStructInfo

Operand: TypeAlias = "Term | tuple[Term, ...] | ShapeStructInfo | PrimValue | None"
"""As `view.Child`, with terms in place of classes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Term:
    """One operator over terms; fields are those of `view.ENode`.

    A ``scalar`` has its dtype as attribute, ``(("dtype", "float32"),)``.  Equal terms are one
    object, by hash-consing, so they are compared by identity.
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


class Terms:
    """The terms of a proof, each once: what makes equal terms one object."""

    def __init__(self) -> None:
        self._terms: dict[Hashable, Term] = {}
        self._height: dict[Term, int] = {}

    def make(
        self,
        op: str,
        children: Iterable[Operand] = (),
        attrs: tuple[tuple[str, Attr], ...] = (),
        key: int = -1,
        scalar: float = 0.0,
        sort: Sort = "tensor",
    ) -> Term:
        """The term of these fields, of which the children are terms of this table."""
        return self._keep(Term(op, tuple(children), attrs, key, scalar, sort))

    def _keep(self, term: Term) -> Term:
        known = self._terms.setdefault((head_of(term), term.children), term)
        if known is term:
            self._height[term] = 1 + max((self._height[t] for t in term.terms), default=0)
        return known

    def adopt(self, root: Term) -> None:
        """Take the terms in `root`, which are of another table, for those of this one.

        All that is adopted must be of one table.
        """
        for term in post_order(root):
            self._keep(term)

    def over(self, term: Term, children: Iterable[Operand]) -> Term:
        """The operator of `term`, over other `children`."""
        return self.make(term.op, children, term.attrs, term.key, term.scalar, term.sort)

    def height(self, term: Term) -> int:
        """The nodes on the longest path down from `term`, with itself."""
        return self._height[term]

    def replaced(self, program: Term, before: Term, after: Term) -> Term:
        """`program` with `after` wherever it has `before`."""
        least, now = self._height[before], {before: after}
        stack = [(program, False)]
        while stack:
            term, ready = stack.pop()
            if term in now:
                continue
            if self._height[term] <= least:
                now[term] = term
            elif ready:
                now[term] = self.over(term, [mapped(c, now.__getitem__) for c in term.children])
            else:
                stack.append((term, True))
                stack.extend((child, False) for child in term.terms)
        return now[program]


def mapped(operand: Operand, of: Callable[[Term], Term]) -> Operand:
    """`operand` with what `of` says in place of its terms."""
    if isinstance(operand, tuple):
        return tuple(map(of, operand))
    return of(operand) if isinstance(operand, Term) else operand


def canonical(shape: ShapeStructInfo) -> ShapeStructInfo:
    """`shape` in the form that rules see, under the assumptions of now."""
    values = shape.values
    return shape if values is None else replace(shape, values=tuple(map(dims.canonical, values)))


def post_order(root: Term, known: Container[Term] = ()) -> Iterator[Term]:
    """The terms in `root` that are not `known`, each once, after its operands."""
    seen, stack = set[Term](), [(root, False)]
    while stack:
        term, ready = stack.pop()
        if ready:
            yield term
        elif term not in seen and term not in known:
            seen.add(term)
            stack.append((term, True))
            stack.extend((child, False) for child in reversed(tuple(term.terms)))


def head_of(term: Term) -> Hashable:
    """What tells `term` from others over the same children: -0.0 from 0.0, and 1 from 1.0."""
    return (term.op, term.sort, term.key, repr((term.attrs, term.scalar)))
