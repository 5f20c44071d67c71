"""Cuts of a single operator, alone or with the data movement that its kernel can absorb."""

from collections.abc import Iterator, Mapping

from relax_egraph.egraph.view import ClassId, EClass, ENode
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cut import Cut, Term, grow, trace
from relax_egraph.extract.data_movement import MovementCuts, loaded
from relax_egraph.extract.nodes import fits_kernel, is_operator
from relax_egraph.ir.operators import named


def single_operator_cuts(movement: MovementCuts, c: ClassId, node: ENode) -> Iterator[Cut]:
    """Cuts whose only arithmetic is the operator `node` of the tensor class `c`.

    The operator alone; an elementwise one also with the broadcasts of its operands; one that is not
    fusible also with the data movement of its operands, which it then reads as strided tensors.  A
    permutation of the result of such an operator is a layout that the operator can write.
    """
    classes, catalogue = movement.classes, movement.catalogue
    if fits_kernel(node):
        yield operator_cut(catalogue, c, node)
        yield cut_with_broadcasts(classes, catalogue, c, node)
    if not named(node.op).fusible:
        yield from _strided_reads(movement, c, node)
    elif node.op == "permute_dims":
        for cut in _permuted_result(movement, node.operands[0]):
            yield from filter(None, [grow(catalogue.term(c, node), [cut])])


def operator_cut(catalogue: Catalogue, c: ClassId, node: ENode) -> Cut:
    """The cut of the operator `node` of the tensor class `c` alone."""
    terms = {k: Term(k, node, -1, source=k) for k in node.operands}
    return trace(c, terms | {c: catalogue.term(c, node)})


def cut_with_broadcasts(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, node: ENode
) -> Cut:
    """The cut of `node` of class `c` and, if it is elementwise, the broadcasts of its operands."""
    terms = {c: catalogue.term(c, node)}
    for k in node.operands:
        broadcasts = (n for n in classes[k].nodes if n.op == "broadcast_to")
        others = (n for n in broadcasts if n.operands[0] not in (c, *node.operands))
        operand = next(others, None) if named(node.op).elementwise else None
        if operand is None:
            terms[k] = Term(k, node, -1, source=k)
        else:
            (source,) = operand.operands
            terms[k] = catalogue.term(k, operand)
            terms[source] = Term(source, operand, -1, source=source)
    return trace(c, terms)


def _permuted_result(movement: MovementCuts, c: ClassId, views: int = 1) -> Iterator[Cut]:
    """Cuts of class `c` by an operator that is not fusible, perhaps reshaped `views` times."""
    classes, catalogue = movement.classes, movement.catalogue
    for node in filter(is_operator, classes[c].nodes):
        if not named(node.op).fusible:
            yield operator_cut(catalogue, c, node)
            yield from _strided_reads(movement, c, node)
        elif node.op == "reshape" and views:
            for cut in _permuted_result(movement, node.operands[0], views - 1):
                yield from filter(None, [grow(catalogue.term(c, node), [cut])])


def _strided_reads(movement: MovementCuts, c: ClassId, node: ENode) -> Iterator[Cut]:
    """Cuts of the operator `node` of class `c` that read operands as strided tensors.

    All operands that the library can read so, all but one, or a single one: a copy that other
    kernels need too is better loaded.
    """
    catalogue = movement.catalogue
    term = catalogue.term(c, node)
    whole = {k: loaded(k) for k in node.operands}
    moved: dict[ClassId, Cut] = {}
    for k in whole:
        for cut in movement.cuts(k):
            read = grow(term, [cut if j == k else whole[j] for j in node.operands])
            if read is not None and catalogue.offer(read) is not None:
                moved[k] = cut
                break
    every = frozenset(moved)
    some = [every, *(every - {k} for k in moved), *(frozenset({k}) for k in moved)]
    for chosen in filter(None, dict.fromkeys(some)):
        cut = grow(term, [moved[k] if k in chosen else whole[k] for k in node.operands])
        if cut is not None:
            yield cut
