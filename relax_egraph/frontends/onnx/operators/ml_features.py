"""Numeric feature operators of the domain ``ai.onnx.ml``."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.operators.ml_scores import DOMAIN
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr, Tuple

_TINY = 1e-30
"""The minimal value of a norm."""


@converts("ArrayFeatureExtractor", domain=DOMAIN)
def extract(node: Node) -> Expr:
    """Elements at indices along the last axis; those of a vector are a row."""
    x = node[0] if node.rank(0) > 1 else node.emit("expand_dims", node[0], axis=0)
    return node.emit("take", x, node.emit("flatten", node[1]), axis=-1)


@converts("Binarizer", domain=DOMAIN)
def binarize(node: Node) -> Expr:
    """1 above a threshold, else 0."""
    dtype = node.dtype(0)
    x = node[0] if is_float(dtype) else node.cast(node[0], "float64")
    above = node.emit("greater", x, node.scalar(node.attrs.number("threshold"), dtype_of(x)))
    return node.emit("astype", above, dtype=dtype)


@converts("Normalizer", domain=DOMAIN)
def normalize(node: Node) -> Expr:
    """Each row divided by its norm."""
    x, norm = node.cast(node[0], "float32"), node.attrs.text("norm")
    if norm not in ("MAX", "L1", "L2"):
        raise ModelError(f"its norm is {norm!r}, needs 'MAX', 'L1' or 'L2'")
    parts = node.emit("square" if norm == "L2" else "abs", x)
    size = node.emit("max" if norm == "MAX" else "sum", parts, axis=-1, keepdims=True)
    if norm == "L2":
        size = node.emit("sqrt", size)
    return node.emit("divide", x, node.emit("maximum", size, node.scalar(_TINY, "float32")))


@converts("Scaler", domain=DOMAIN)
def scale(node: Node) -> Expr:
    """``(x - offset) · scale``, each for all features or for one."""
    x = node.cast(node[0], "float32")
    offset, factor = (
        Constant(np.array(node.attrs.numbers(name), np.float32)) for name in ("offset", "scale")
    )
    return node.emit("multiply", node.emit("subtract", x, offset), factor)


@converts("Imputer", domain=DOMAIN)
def impute(node: Node) -> Expr:
    """Replace missing values, by one value or by one for each feature."""
    x, dtype = node[0], node.dtype(0)
    values: Sequence[float]
    if is_float(dtype):
        values, old = node.attrs.numbers("imputed_value_floats"), "replaced_value_float"
    else:
        values, old = node.attrs.integers("imputed_value_int64s"), "replaced_value_int64"
    replaced = node.attrs.schema_default(old)
    if isinstance(replaced, float) and math.isnan(replaced):
        missing = node.emit("isnan", x)
    else:
        missing = node.emit("equal", x, node.scalar(replaced, dtype))
    return node.emit("where", missing, Constant(np.array(values, dtype)), x)


@converts("FeatureVectorizer", domain=DOMAIN)
def join(node: Node) -> Expr:
    """Concatenated features, a fixed number from each operand."""
    parts: list[Expr] = []
    for place, width in enumerate(node.attrs.integers("inputdimensions")):
        x = node.cast(node[place], "float32")
        if node.rank(place) == 1:
            x = node.emit("expand_dims", x, axis=1)
        cut = ShapeExpr((0,)), ShapeExpr((width,))
        x = node.emit("strided_slice", x, *cut, axes=(1,))
        count = node.shape(place)[1] if node.rank(place) > 1 else 1
        if not isinstance(count, int):
            raise ModelError(f"how many features operand {place} has is known only at run time")
        if count < width:
            x = node.emit("nn.pad", x, pad_width=(0, 0, 0, width - count))
        parts.append(x)
    return node.emit("concat", Tuple(tuple(parts)), axis=1)


@converts("OneHotEncoder", domain=DOMAIN)
def one_hot(node: Node) -> Expr:
    """1 at the category along a new last axis; all 0 for unknown categories."""
    if not node.attrs.has("cats_int64s"):
        raise ModelError("its categories are strings")
    x = node.emit("expand_dims", node.cast(node[0], "int64"), axis=-1)
    categories = Constant(np.array(node.attrs.integers("cats_int64s"), np.int64))
    return node.emit("astype", node.emit("equal", x, categories), dtype="float32")


@converts("LabelEncoder", domain=DOMAIN)
def encode(node: Node) -> Expr:
    """The value of each key, and a default for unknown keys."""
    keys, values, default = _table(node)
    order = np.argsort(keys, kind="stable")
    ordered = Constant(keys[order])
    x = node.cast(node[0], keys.dtype.name)
    place = node.emit("bucketize", x, ordered)
    last = node.scalar(len(keys) - 1, "int64")
    place = node.emit("minimum", place, last)
    is_key = node.emit("equal", node.emit("take", ordered, place, axis=0), x)
    if is_float(keys.dtype.name) and np.isnan(keys).any():
        is_key = node.emit("logical_or", is_key, node.emit("isnan", x))
    value = node.emit("take", Constant(values[order]), place, axis=0)
    return node.emit("where", is_key, value, Constant(default))


_TYPES = (("int64s", "default_int64", np.int64), ("floats", "default_float", np.float32))


def _table(node: Node) -> tuple[Any, Any, Any]:
    """Distinct keys, their values, and the default, as arrays."""
    keys, _ = _column(node, "keys")
    values, default = _column(node, "values")
    if len(keys) != len(values) or not len(keys):
        raise ModelError(f"it has {len(keys)} keys and {len(values)} values")
    last = {key: place for place, key in enumerate(keys.tolist())}
    last_places = list(last.values())
    return keys[last_places], values[last_places], default


def _column(node: Node, name: str) -> tuple[Any, Any]:
    """Keys or values, and the default of their type."""
    if node.attrs.has(f"{name}_tensor"):
        array = node.frame.model.store.array(node.attrs.tensor(f"{name}_tensor")).reshape(-1)
        if not node.attrs.has("default_tensor"):
            return array, np.zeros((), array.dtype)
        default = node.frame.model.store.array(node.attrs.tensor("default_tensor"))
        return array, default.reshape(()).astype(array.dtype)
    for suffix, default_name, dtype in _TYPES:
        if node.attrs.has(f"{name}_{suffix}"):
            default = np.asarray(node.attrs.schema_default(default_name), dtype)
            return np.array(node.attrs.schema_default(f"{name}_{suffix}"), dtype), default
    raise ModelError(f"its {name} are strings")
