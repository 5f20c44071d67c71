"""Cuts of one operator of a tensor class: as it stands there, and with what it can take in."""

from collections.abc import Iterator, Mapping

from relax_egraph.egraph.view import ClassId, EClass, ENode
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cut import Cut, Term, grow, trace
from relax_egraph.extract.moves import Moves, loaded
from relax_egraph.extract.nodes import fits_kernel, is_operator
from relax_egraph.ir.op import OPS


def cuts_alone(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, node: ENode
) -> Iterator[Cut]:
    """The operator `node` of the tensor class `c` and no other that computes.

    By itself; if it is elementwise, with the broadcasts of its operands; if kernels take it in no
    other way, with what its operands are moved from, so that it reads them where they lie.  A
    permutation of what such an operator makes is a way to store that.
    """
    if fits_kernel(node):
        yield alone(catalogue, c, node)
        yield broadcasting(classes, catalogue, c, node)
    if not OPS[node.op].fusible:
        yield from _in_place(classes, catalogue, c, node)
    elif node.op == "permute_dims":
        for cut in _stored(classes, catalogue, node.classes[0]):
            yield from filter(None, [grow(catalogue.term(c, node), [cut])])


def alone(catalogue: Catalogue, c: ClassId, node: ENode) -> Cut:
    """The cut that is the operator `node` of the tensor class `c`, and nothing else."""
    terms = {k: Term(k, node, -1, source=k) for k in node.classes}
    return trace(c, terms | {c: catalogue.term(c, node)})


def broadcasting(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, node: ENode
) -> Cut:
    """The operator `node` of class `c` with the broadcasts of its operands, if elementwise."""
    terms = {c: catalogue.term(c, node)}
    for k in node.classes:
        spread = (n for n in classes[k].nodes if n.op == "broadcast_to")
        others = (n for n in spread if n.classes[0] not in (c, *node.classes))
        operand = next(others, None) if OPS[node.op].elementwise else None
        if operand is None:
            terms[k] = Term(k, node, -1, source=k)
        else:
            (source,) = operand.classes
            terms[k] = catalogue.term(k, operand)
            terms[source] = Term(source, operand, -1, source=source)
    return trace(c, terms)


def _stored(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, views: int = 1
) -> Iterator[Cut]:
    """Class `c` by an operator that kernels take in no other way, perhaps in another shape."""
    for node in filter(is_operator, classes[c].nodes):
        if not OPS[node.op].fusible:
            yield alone(catalogue, c, node)
            yield from _in_place(classes, catalogue, c, node)
        elif node.op == "reshape" and views:
            for cut in _stored(classes, catalogue, node.classes[0], views - 1):
                yield from filter(None, [grow(catalogue.term(c, node), [cut])])


def _in_place(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, node: ENode
) -> Iterator[Cut]:
    """The operator `node` of class `c` with operands that it reads where they lie.

    All that it can read so, all but one, or one: what is moved for others too is better loaded.
    """
    term, moves = catalogue.term(c, node), Moves(classes, catalogue)
    whole = {k: loaded(k) for k in node.classes}
    moved: dict[ClassId, Cut] = {}
    for k in whole:
        for cut in moves.cuts(k):
            read = grow(term, [cut if j == k else whole[j] for j in node.classes])
            if read is not None and catalogue.offer(read) is not None:
                moved[k] = cut
                break
    every = frozenset(moved)
    some = [every, *(every - {k} for k in moved), *(frozenset({k}) for k in moved)]
    for chosen in filter(None, dict.fromkeys(some)):
        cut = grow(term, [moved[k] if k in chosen else whole[k] for k in node.classes])
        if cut is not None:
            yield cut
