"""Linear models of the domain ``ai.onnx.ml``."""

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.ml_scores import (
    DOMAIN,
    classes_of,
    labels_of,
    transformed,
)
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Constant, Expr, Tuple


@converts("LinearRegressor", domain=DOMAIN)
def linear_regressor(node: Node) -> Expr:
    """``x · coefficients + intercepts``."""
    scores = _scores(node, node.attrs.integer("targets"))
    return transformed(node, scores, node.attrs.text("post_transform"))


@converts("LinearClassifier", domain=DOMAIN)
def linear_classifier(node: Node) -> tuple[Expr, ...]:
    """The label of the greatest score, and the scores; a single one is that of the second class."""
    classes = classes_of(node, "classlabels_ints")
    if len(classes) < 2:
        raise ModelError(f"it has {len(classes)} classes, needs 2 or more")
    width = len(node.attrs.numbers("intercepts")) if node.attrs.has("intercepts") else 0
    scores = _scores(node, width or len(classes))
    if width == 1 and len(classes) == 2:
        scores = node.emit("concat", Tuple((node.emit("negative", scores), scores)), axis=1)
    scores = transformed(node, scores, node.attrs.text("post_transform"))
    return labels_of(node, scores, classes), scores


def _scores(node: Node, rows: int) -> Expr:
    """``x · coefficientsᵀ + intercepts``, for `rows` rows of coefficients."""
    coefficients = np.array(node.attrs.numbers("coefficients"), np.float32)
    if rows < 1 or coefficients.size % rows:
        raise ModelError(f"{coefficients.size} coefficients do not divide into {rows} rows")
    weights = np.ascontiguousarray(coefficients.reshape(rows, -1).T)
    out = node.emit("matmul", node.cast(node[0], "float32"), Constant(weights))
    if not node.attrs.has("intercepts"):
        return out
    return node.emit("add", out, Constant(np.array(node.attrs.numbers("intercepts"), np.float32)))
