"""Scores of classes or targets of the domain ``ai.onnx.ml``, and the labels they select."""

from collections.abc import Sequence

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir.expr import Constant, Expr

DOMAIN = "ai.onnx.ml"

POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")
"""The supported transforms of scores; ``SOFTMAX_ZERO`` and ``PROBIT`` are not supported."""


def transformed(node: Node, scores: Expr, post: str) -> Expr:
    """`scores`, a row for each sample, transformed by `post`."""
    match post:
        case "NONE":
            return scores
        case "SOFTMAX":
            return node.emit("nn.softmax", scores, axis=1)
        case "LOGISTIC":
            return node.emit("sigmoid", scores)
        case _:
            needs = ", ".join(POST_TRANSFORMS)
            raise ModelError(f"its post_transform is {post!r}, needs one of {needs}")


def classes_of(node: Node, name: str) -> tuple[int, ...]:
    """The labels in the attribute `name`; raises `ModelError` if they are strings."""
    if node.attrs.has("classlabels_strings"):
        raise ModelError("its labels are strings")
    return node.attrs.integers(name)


def labels_of(node: Node, scores: Expr, classes: Sequence[int]) -> Expr:
    """The class of the greatest score of each sample."""
    best = node.emit("argmax", scores, axis=1)
    return node.emit("take", Constant(np.array(classes, np.int64)), best, axis=0)
