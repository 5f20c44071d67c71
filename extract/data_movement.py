"""Cuts of data movement alone: slices, joins, permutations and reshapes of a tensor in memory.

A kernel that reads strided operands can read such a value from its source, without a copy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.node import CALLS, LOAD, OPAQUE, Node
from relax_egraph.egraph.view import ClassId, EClass, ENode
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cut import Cut, Term, grow, trace
from relax_egraph.extract.nodes import is_alias, is_leaf, is_operator
from relax_egraph.extract.work import none, work_of

MOVEMENT_OPERATORS = frozenset({"strided_slice", "concat", "permute_dims", "reshape"})
"""Operators that compute nothing and that strided reads can express."""

MAX_DEPTH = 8
"""The longest chain of movement operators that is considered."""


@dataclass(slots=True)
class MovementCuts:
    """The shortest chains of movement operators from tensors in memory to other classes."""

    classes: Mapping[ClassId, EClass]
    catalogue: Catalogue
    _known: dict[tuple[ClassId, int], Cut | None] = field(
        default_factory=dict[tuple[ClassId, int], "Cut | None"]
    )

    def cuts(self, k: ClassId) -> Iterator[Cut]:
        """Cuts that produce class `k` by data movement: the longest chain first, then its suffixes.

        Chains of reshapes alone are left out: a reshape is free.
        """
        longest = self._cut(k, MAX_DEPTH)
        if longest is None:
            return
        for depth in range(_depth(longest), 0, -1):
            cut = _suffix(longest, depth)
            if any(term.node.op != "reshape" for term, _ in cut.steps):
                yield cut

    def _cut(self, k: ClassId, max_depth: int) -> Cut | None:
        """The cut with the fewest operators that produces class `k`; ``None`` if there is none.

        It is at most `max_depth` operators deep.  A slice of a tensor is read from that tensor,
        even if the slice could be computed by itself.
        """
        if (k, max_depth) not in self._known:
            eclass = self.classes[k]
            nodes = [n for n in eclass.nodes if n.op in MOVEMENT_OPERATORS and k not in n.operands]
            cut = self._shortest(k, [n for n in nodes if n.op == "strided_slice"], max_depth)
            if cut is None and _is_computed(eclass):
                cut = loaded(k)
            cut = cut or self._shortest(k, nodes, max_depth)
            if cut is None and any(_computes(n) or is_alias(n) for n in eclass.nodes):
                cut = loaded(k)
            self._known[k, max_depth] = cut
        return self._known[k, max_depth]

    def _shortest(self, k: ClassId, nodes: list[ENode], max_depth: int) -> Cut | None:
        cuts: list[Cut] = []
        for node in nodes if max_depth else ():
            operands = [cut for d in node.operands if (cut := self._cut(d, max_depth - 1))]
            if len(operands) == len(node.operands):
                cut = grow(self.catalogue.term(k, node), operands)
                cuts += [cut] if cut else []
        return min(cuts, key=lambda cut: len(cut.steps), default=None)


def loaded(k: ClassId) -> Cut:
    """The cut that loads class `k` from memory."""
    return trace(k, {k: _load(k)})


def _load(k: ClassId) -> Term:
    return Term(k, Node(LOAD, (k,)), -1, source=k)


def _is_computed(eclass: EClass) -> bool:
    """Whether the class is a leaf, a constant, or the result of arithmetic."""
    if eclass.is_const or any(is_leaf(n) or n.op in _CALLED for n in eclass.nodes):
        return True
    return any(_computes(n) and work_of(n.op) is not none for n in eclass.nodes)


_CALLED = (OPAQUE, *CALLS)
"""Nodes whose results are in memory, as those of inputs are."""


def _computes(node: ENode) -> bool:
    """Whether `node` is an operator other than data movement."""
    return is_operator(node) and node.op not in MOVEMENT_OPERATORS


def _depth(cut: Cut) -> int:
    """The length of the longest chain of steps."""
    depths: list[int] = []
    for _, operands in cut.steps:
        depths.append(1 + max([depths[o] for o in operands if o >= 0], default=0))
    return depths[-1] if depths else 0


def _suffix(cut: Cut, depth: int) -> Cut:
    """The last `depth` levels of steps of `cut`; their operands are loaded."""
    top = cut.steps[-1][0].owner
    kept: dict[ClassId, Term] = {}
    level = {top}
    for _ in range(depth):
        computed = [cut.terms[c] for c in level if cut.terms[c].source < 0]
        kept.update({term.owner: term for term in computed})
        level = {d for term in computed for d in term.children}
    operands = {d for term in kept.values() for d in term.children}
    return trace(top, {d: _load(d) for d in operands} | kept)
