"""Cuts that only move what a class is made of: where it can be read without being made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.view import LOAD, OPAQUE, ClassId, EClass, ENode
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cut import Cut, Term, grow, trace
from relax_egraph.extract.nodes import is_handle, is_operator, is_there
from relax_egraph.extract.work import WORK, none

MOVES = frozenset({"strided_slice", "concat", "permute_dims", "reshape"})
"""The operators that do no more than move elements."""

MOST = 8
"""How many there may be one after the other."""


@dataclass(slots=True)
class Moves:
    """The shortest ways from tensors that are there, or computed, to classes that are not."""

    classes: Mapping[ClassId, EClass]
    catalogue: Catalogue
    _known: dict[tuple[ClassId, int], Cut | None] = field(
        default_factory=dict[tuple[ClassId, int], "Cut | None"]
    )

    def cuts(self, k: ClassId) -> Iterator[Cut]:
        """Cuts that make class `k` by moves, the whole way first, then ever less of it.

        None of reshapes alone: they are free.
        """
        whole = self._cut(k, MOST)
        if whole is None:
            return
        for depth in range(_depth(whole), 0, -1):
            cut = _last(whole, depth)
            if any(term.node.op != "reshape" for term, _ in cut.steps):
                yield cut

    def _cut(self, k: ClassId, most: int) -> Cut | None:
        """The shortest way to class `k`, of at most so many moves; ``None`` if there is none.

        A part of a tensor is read from there, even if it could be computed by itself.
        """
        if (k, most) not in self._known:
            eclass = self.classes[k]
            nodes = [n for n in eclass.nodes if n.op in MOVES and k not in n.classes]
            found = self._shortest(k, [n for n in nodes if n.op == "strided_slice"], most)
            if found is None and _is_computed(eclass):
                found = loaded(k)
            found = found or self._shortest(k, nodes, most)
            if found is None and any(_is_other(n) or is_handle(n) for n in eclass.nodes):
                found = loaded(k)
            self._known[k, most] = found
        return self._known[k, most]

    def _shortest(self, k: ClassId, nodes: list[ENode], most: int) -> Cut | None:
        found: list[Cut] = []
        for node in nodes if most else ():
            below = [cut for d in node.classes if (cut := self._cut(d, most - 1))]
            if len(below) == len(node.classes):
                cut = grow(self.catalogue.term(k, node), below)
                found += [cut] if cut else []
        return min(found, key=lambda cut: len(cut.steps), default=None)


def loaded(k: ClassId) -> Cut:
    """Class `k` as it is in memory."""
    return trace(k, {k: _load(k)})


def _load(k: ClassId) -> Term:
    return Term(k, ENode(LOAD, (k,)), -1, source=k)


def _is_computed(eclass: EClass) -> bool:
    """Whether the class is there, or made by what does more than move elements."""
    if eclass.is_const or any(is_there(n) or n.op == OPAQUE for n in eclass.nodes):
        return True
    return any(_is_other(n) and WORK[n.op] is not none for n in eclass.nodes)


def _is_other(node: ENode) -> bool:
    """Whether `node` is an operator, and none of the moves."""
    return is_operator(node) and node.op not in MOVES


def _depth(cut: Cut) -> int:
    """How many steps there are one after the other."""
    depths: list[int] = []
    for _, operands in cut.steps:
        depths.append(1 + max([depths[o] for o in operands if o >= 0], default=0))
    return depths[-1] if depths else 0


def _last(cut: Cut, depth: int) -> Cut:
    """The steps that are at most so many before the end; what they are of is loaded."""
    top = cut.steps[-1][0].owner
    kept: dict[ClassId, Term] = {}
    level = {top}
    for _ in range(depth):
        computed = [cut.terms[c] for c in level if cut.terms[c].source < 0]
        kept.update({term.owner: term for term in computed})
        level = {d for term in computed for d in term.children}
    below = {d for term in kept.values() for d in term.children}
    return trace(top, {d: _load(d) for d in below} | kept)
