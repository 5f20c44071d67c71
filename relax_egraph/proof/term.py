"""A program as a shared graph of terms: nodes over terms."""

from collections.abc import Container, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from relax_egraph.egraph.node import LOAD, STORE, C, Child, Node, Sort
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import ShapeStructInfo

Operand: TypeAlias = "Child[Term]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Term(Node["Term"]):
    """A node over terms, and the sort of its value.

    Equal terms are one object, by hash-consing, so they are compared by identity.
    """

    sort: Sort = "tensor"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__
    __repr__ = object.__repr__


class Terms:
    """The hash-consing table of the terms of a proof: equal terms are one object."""

    def __init__(self) -> None:
        self._terms: dict[Hashable, Term] = {}
        self._height: dict[Term, int] = {}

    def term(self, node: Node[Term]) -> Term:
        """The term of `node`, whose operands are terms of this table."""
        return self._keep(Term(node.op, node.children, node.attrs, _sort(node)))

    def _keep(self, term: Term) -> Term:
        known = self._terms.setdefault(key_of(term), term)
        if known is term:
            self._height[term] = 1 + max((self._height[t] for t in term.operands), default=0)
        return known

    def adopt(self, root: Term) -> None:
        """Add the terms in `root`, which are from another table, to this one.

        All adopted terms must be from one table.
        """
        for term in post_order(root):
            self._keep(term)

    def over(self, term: Term, children: Iterable[Operand]) -> Term:
        """The operator of `term`, over other `children`."""
        return self.term(Node(term.op, tuple(children), term.attrs))

    def height(self, term: Term) -> int:
        """The number of nodes on the longest path down from `term`, including itself."""
        return self._height[term]

    def replaced(self, program: Term, before: Term, after: Term) -> Term:
        """`program` with `after` in place of each `before`."""
        least, now = self._height[before], {before: after}
        stack = [(program, False)]
        while stack:
            term, ready = stack.pop()
            if term in now:
                continue
            if self._height[term] <= least:
                now[term] = term
            elif ready:
                now[term] = self.term(term.over(now.__getitem__))
            else:
                stack.append((term, True))
                stack.extend((child, False) for child in term.operands)
        return now[program]


def _sort(node: Node[Term]) -> Sort:
    """The sort of the value of `node`."""
    if node.op == LOAD or (node.op != STORE and any(t.sort == "kernel" for t in node.operands)):
        return "kernel"
    traits = operators().get(node.op)
    return "tuple" if traits and traits.makes_tuple else "tensor"


def canonical(node: Node[C]) -> Node[C]:
    """`node` with canonical shapes, as rules see them, under the current assumptions."""

    def child(of: Child[C]) -> Child[C]:
        if not isinstance(of, ShapeStructInfo) or of.values is None:
            return of
        return replace(of, values=tuple(map(dims.canonical, of.values)))

    return replace(node, children=tuple(map(child, node.children)))


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
            stack.extend((child, False) for child in reversed(tuple(term.operands)))


def head_of(node: Node[Any]) -> Hashable:
    """A key of the operator and attributes; it distinguishes -0.0 from 0.0, and 1 from 1.0."""
    return (node.op, repr(node.attrs))


def key_of(node: Node[Any]) -> Hashable:
    """A key that is equal for equal nodes; NaN is equal to itself."""
    return (head_of(node), node.children)
