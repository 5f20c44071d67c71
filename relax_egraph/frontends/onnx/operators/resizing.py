"""Resizing of images: the parameters of each axis."""

import math
from collections.abc import Sequence
from fractions import Fraction

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.interpolation import Along, Interpolation
from relax_egraph.frontends.building.resized import METHODS, resized
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr, const
from relax_egraph.ir.ops.resizing import CROP
from relax_egraph.ir.struct_info import ShapeStructInfo


@converts("Upsample")
def upsample(node: Node) -> Expr:
    """Resizing by scales, with the coordinates of the scaled grid."""
    if not node.attrs.has("scales"):
        return _by_operand(node, _interpolation(node))
    scales = node.attrs.numbers("scales")
    return resized(
        node, node[0], _interpolation(node), _by_scales(node, range(node.rank(0)), scales)
    )


def _by_operand(node: Node, how: Interpolation) -> Expr:
    """Operand 0, resized by the scales in operand 1."""
    scales = _floats(node, 1)
    if scales is None:
        raise ModelError("it has no scales")
    return resized(node, node[0], how, _by_scales(node, range(node.rank(0)), scales))


@converts("Resize")
def resize(node: Node) -> Expr:
    """Resizing along some axes, by scales or extents."""
    rank, how = node.rank(0), _interpolation(node)
    if node.version < 11:
        return _by_operand(node, how)
    has_axes = node.attrs.has("axes")
    selected = node.attrs.integers("axes") if has_axes else range(rank)
    axes = [node.normalized(axis, rank) for axis in selected]
    scales = _floats(node, 2)
    if scales is not None:
        moves = _by_scales(node, axes, scales)
    elif node.has(3):
        moves = _by_sizes(node, axes)
    else:
        raise ModelError("it has neither scales nor sizes")
    if how.mode == CROP:
        moves = _with_regions(node, moves)
    return resized(node, node[0], how, moves)


def _interpolation(node: Node) -> Interpolation:
    attrs = node.attrs
    method = attrs.text("mode")
    method = "linear" if method == "bilinear" else method
    if method not in METHODS:
        raise ModelError(f"its mode is {method!r}, needs one of {', '.join(METHODS)}")
    if node.op == "Upsample" or node.version < 11:
        return Interpolation(METHODS[method], "asymmetric", "floor")
    return Interpolation(
        METHODS[method],
        attrs.text("coordinate_transformation_mode"),
        attrs.text("nearest_mode"),
        attrs.number("cubic_coeff_a"),
        bool(attrs.integer("exclude_outside")),
        attrs.number("extrapolation_value"),
        bool(attrs.schema_default("antialias")),
    )


def _floats(node: Node, place: int) -> Sequence[float] | Expr | None:
    """The numbers in operand `place`, or its tensor; ``None`` if it is absent."""
    if not node.has(place) or node.info(place).dims == (0,):
        return None
    constant = node.constant(place)
    return node[place] if constant is None else constant.data.reshape(-1).tolist()


# --- extents ----------------------------------------------------------------------------


def _by_scales(node: Node, axes: Sequence[int], scales: Sequence[float] | Expr) -> list[Along]:
    """Each extent times its scale, rounded down."""
    shape = node.shape(0)
    extents = [shape[axis] for axis in axes]
    if isinstance(scales, Expr):
        wide = node.cast(scales, "float64")
        targets = _computed(node, _times(node, axes, wide), len(axes))
        each: list[float | Expr] = [_one(node, wide, k) for k in range(len(axes))]
    else:
        _check_count("scales", scales, len(axes))
        if not all(0 < s < math.inf for s in scales):
            raise ModelError(f"its scales are {list(scales)}, needs finite ones above 0")
        targets = [_scaled(e, Fraction(s)) for e, s in zip(extents, scales, strict=True)]
        each = [*scales]
    return [*map(Along, axes, extents, targets, each)]


def _by_sizes(node: Node, axes: Sequence[int]) -> list[Along]:
    """The sizes in operand 3, perhaps with the minimal or maximal of their scales on all axes."""
    shape, elements = node.shape(0), node.elements(3)
    extents = [shape[axis] for axis in axes]
    policy = node.attrs.schema_default("keep_aspect_ratio_policy") or "stretch"
    if policy not in ("stretch", "not_larger", "not_smaller"):
        raise ModelError(f"its keep_aspect_ratio_policy is {policy!r}")
    if elements is not None:
        _check_count("sizes", elements.dims, len(axes))
    if policy == "stretch":
        sizes = elements.dims if elements is not None else _computed(node, node[3], len(axes))
        return [*map(Along, axes, extents, sizes)]
    pairs = [*zip(extents, elements.dims if elements is not None else extents, strict=True)]
    if elements is not None and all(isinstance(d, int) and d > 0 for pair in pairs for d in pair):
        ratios = [Fraction(int(size), int(extent)) for extent, size in pairs]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        rounded = [math.floor(ratio * int(extent) + Fraction(1, 2)) for extent, _ in pairs]
        return [
            Along(a, e, t, float(ratio)) for a, e, t in zip(axes, extents, rounded, strict=True)
        ]
    own = _extents(node, axes)
    scales = node.emit("divide", node.cast(node[3], "float64"), own)
    scale = node.emit("min" if policy == "not_larger" else "max", scales, axis=None)
    products = node.emit("add", node.emit("multiply", own, scale), const(0.5, "float64"))
    whole = node.cast(node.emit("floor", products), "int64")
    targets = _computed(node, whole, len(axes))
    return [Along(a, e, t, scale) for a, e, t in zip(axes, extents, targets, strict=True)]


def _scaled(extent: Dim, scale: Fraction) -> Dim:
    return dims.floordiv(dims.mul(extent, scale.numerator), scale.denominator)


def _extents(node: Node, axes: Sequence[int]) -> Expr:
    """The operand's extents along `axes`, as a float64 tensor."""
    shape = node.shape(0)
    extents = node.emit("shape_to_tensor", ShapeExpr(tuple(shape[axis] for axis in axes)))
    return node.cast(extents, "float64")


def _times(node: Node, axes: Sequence[int], scales: Expr) -> Expr:
    product = node.emit("multiply", _extents(node, axes), scales)
    return node.cast(node.emit("floor", product), "int64")


def _computed(node: Node, sizes: Expr, count: int) -> Sequence[Dim]:
    """Symbols for the extents in the tensor `sizes`."""
    actual = info_of(sizes).dims
    if actual is not None and actual != (count,):
        raise ModelError(f"its sizes are of shape {actual}, needs {count} extents")
    symbols = node.frame.model.symbols
    targets = tuple(symbols.computed(f"{node.outputs[0]}_{axis}") for axis in range(count))
    shape = node.emit("tensor_to_shape", sizes)
    node.scope.bb.emit_match_cast(shape, ShapeStructInfo(targets))
    return targets


def _with_regions(node: Node, moves: Sequence[Along]) -> list[Along]:
    """The moves, each with its start and end from operand 1."""
    count, roi = len(moves), _floats(node, 1)
    if roi is None:
        raise ModelError(f"its coordinate_transformation_mode is {CROP!r}, needs a roi")
    if isinstance(roi, Expr):
        wide = node.cast(roi, "float64")
        regions: Sequence[float | Expr] = [_one(node, wide, k) for k in range(2 * count)]
    else:
        _check_count("roi", roi, 2 * count)
        regions = roi
    return [
        Along(m.axis, m.extent, m.target, m.scale, (regions[k], regions[count + k]))
        for k, m in enumerate(moves)
    ]


def _one(node: Node, values: Expr, place: int) -> Expr:
    return node.emit("take", values, const(place, "int64"), axis=0)


def _check_count(what: str, values: Sequence[object], count: int) -> None:
    if len(values) != count:
        raise ModelError(f"its {what} are {list(values)}, needs {count} values")
