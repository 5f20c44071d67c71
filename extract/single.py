"""Cuts of one operator of a tensor class: as it stands there, and with what it can take in."""

from collections.abc import Iterator, Mapping

from relax_egraph.egraph.view import ClassId, EClass, ENode
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cut import Cut, Term, trace
from relax_egraph.extract.nodes import fits_kernel
from relax_egraph.ir.op import OPS

_SLICE = "strided_slice"
_VIEWS = frozenset({"reshape", "permute_dims"})
"""What may be between a slice and the operator that reads it."""


def cuts_alone(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, node: ENode
) -> Iterator[Cut]:
    """The operator `node` of the tensor class `c` and no other that computes.

    By itself; if it is elementwise, with the broadcasts of its operands; if kernels take it in no
    other way, with the slices that its operands are, so that it reads them where they lie.
    """
    if fits_kernel(node):
        yield alone(catalogue, c, node)
        yield broadcasting(classes, catalogue, c, node)
    if not OPS[node.op].fusible:
        sliced = _reading_slices(classes, catalogue, c, node)
        if sliced is not None:
            yield sliced


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


def _reading_slices(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, node: ENode
) -> Cut | None:
    """The operator `node` of class `c` with its operands' slices; ``None`` if none is a slice."""
    terms: dict[ClassId, Term] = {}
    for k in node.classes:
        terms.update(_slice(classes, catalogue, k))
    if not terms:
        return None
    sources = {d for term in terms.values() for d in term.children} | set(node.classes)
    if c in sources or c in terms:
        return None
    loads = {d: Term(d, node, -1, source=d) for d in sources if d not in terms}
    return trace(c, loads | terms | {c: catalogue.term(c, node)})


def _slice(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, k: ClassId
) -> dict[ClassId, Term]:
    """The terms that make class `k` a slice, perhaps in another shape; empty if it is none."""
    chain: dict[ClassId, Term] = {}
    while k not in chain:
        nodes = classes[k].nodes
        taken = next((n for n in nodes if n.op == _SLICE), None)
        if taken is not None:
            return {**chain, k: catalogue.term(k, taken)}
        view = next((n for n in nodes if n.op in _VIEWS), None)
        if view is None:
            return {}
        chain[k] = catalogue.term(k, view)
        (k,) = view.classes
    return {}
