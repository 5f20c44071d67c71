"""Einstein summation."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, Tuple
from relax_egraph.ir.subscripts import read_subscripts

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Term:
    """A tensor, and the labels of its axes."""

    x: Expr
    labels: Labels


@converts("Einsum")
def einsum(node: Node) -> Expr:
    """A chain of matrix products if each label has one extent.

    Equations with a repeated label in a term (a diagonal) or broadcast ellipsis axes become one
    operator.
    """
    equation = node.attrs.text("equation")
    operands = node.all()
    try:
        parsed = read_subscripts(equation, [node.rank(k) for k in range(len(operands))])
    except ValueError as problem:
        raise ModelError(f"its equation is {equation!r}: {problem}") from None
    terms = [_Term(x, labels) for x, labels in zip(operands, parsed.terms, strict=True)]
    extents = _extents(terms)
    if extents is None:
        return node.emit("einsum", Tuple(tuple(operands)), subscripts=equation)
    term, *others = terms
    for k, other in enumerate(others, 1):
        later = {label for term in terms[k + 1 :] for label in term.labels}
        term = _product(node, term, other, later.union(parsed.output), extents)
    summed = _without(node, term, set(parsed.output))
    return _ordered(node, summed, parsed.output)


def _extents(terms: Sequence[_Term]) -> dict[str, Dim] | None:
    """The extent of each label; ``None`` if it is ambiguous or a term repeats a label."""
    extents: dict[str, Dim] = {}
    for term in terms:
        shape = info_of(term.x).dims
        if shape is None or len(set(term.labels)) < len(term.labels):
            return None
        for label, extent in zip(term.labels, shape, strict=True):
            if not dims.equal(extents.setdefault(label, extent), extent):
                return None
    return extents


def _product(node: Node, a: _Term, b: _Term, kept: set[str], extents: dict[str, Dim]) -> _Term:
    """The product of `a` and `b`, summed over the common labels that are not `kept`."""
    a, b = _without(node, a, kept.union(b.labels)), _without(node, b, kept.union(a.labels))
    both = [label for label in a.labels if label in b.labels]
    batch = tuple(label for label in both if label in kept)
    summed = tuple(label for label in both if label not in kept)
    left = tuple(label for label in a.labels if label not in both)
    right = tuple(label for label in b.labels if label not in both)
    labels = (*batch, *left, *right)
    if not summed:
        factors = (_aligned(node, term, labels) for term in (a, b))
        return _Term(node.emit("multiply", *factors), labels)
    x = _matrices(node, a, batch, left, summed, extents)
    y = _matrices(node, b, batch, summed, right, extents)
    product = node.emit("matmul", x, y)
    if len(left) != 1 or len(right) != 1:
        product = node.emit("reshape", product, ShapeExpr(tuple(extents[k] for k in labels)))
    return _Term(product, labels)


def _matrices(
    node: Node, term: _Term, batch: Labels, rows: Labels, columns: Labels, extents: dict[str, Dim]
) -> Expr:
    """`term` as a matrix of `rows` and `columns` for each of `batch`."""
    x = _ordered(node, term, (*batch, *rows, *columns))
    if len(rows) == len(columns) == 1:
        return x
    sides = (dims.product(extents[label] for label in side) for side in (rows, columns))
    return node.emit("reshape", x, ShapeExpr((*(extents[label] for label in batch), *sides)))


def _without(node: Node, term: _Term, kept: set[str]) -> _Term:
    """`term` summed over the labels that are not `kept`."""
    axes = tuple(k for k, label in enumerate(term.labels) if label not in kept)
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in kept)
    return _Term(node.emit("sum", term.x, axis=axes), labels)


def _ordered(node: Node, term: _Term, labels: Labels) -> Expr:
    """`term` with its axes in the order of `labels`."""
    if term.labels == labels:
        return term.x
    return node.emit("permute_dims", term.x, axes=tuple(map(term.labels.index, labels)))


def _aligned(node: Node, term: _Term, labels: Labels) -> Expr:
    """`term` with an axis for each of `labels`; new axes have extent 1."""
    x = _ordered(node, term, tuple(label for label in labels if label in term.labels))
    new = tuple(k for k, label in enumerate(labels) if label not in term.labels)
    return node.emit("expand_dims", x, axis=new) if new else x
