"""Interpolation axis by axis: coordinates, neighbours and their weights as tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import Builder, info_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr, const
from relax_egraph.ir.ops.resizing import CROP

_WIDE = "float64"


@dataclass(frozen=True, slots=True)
class Interpolation:
    """An interpolation method, with the names of `R.image.resize2d` and the modes of ONNX."""

    method: str
    mode: str
    rounding: str
    alpha: float = -0.75
    exclude: bool = False
    extrapolation: float = 0.0
    antialias: bool = False


@dataclass(frozen=True, slots=True)
class Along:
    """An axis of `extent` that is resized to `target`.

    `scale` is their quotient by default; `region` is the part of the axis that a crop resizes.
    Expressions are float64 tensors of rank 0.
    """

    axis: int
    extent: Dim
    target: Dim
    scale: float | Expr | None = None
    region: tuple[float | Expr, float | Expr] = (0.0, 1.0)


def interpolated(b: Builder, x: Expr, how: Interpolation, moves: Sequence[Along]) -> Expr:
    """`x` resized along the axes of `moves`, in float64 unless by the nearest element."""
    for move in moves:
        x = _Axis(b, how, move).of(x)
    return x


@dataclass(frozen=True, slots=True)
class _Axis:
    b: Builder
    how: Interpolation
    move: Along

    def of(self, x: Expr) -> Expr:
        """`x` resized along the axis."""
        at = self._coordinates()
        if self.how.method == "nearest_neighbor":
            result = self._take(x, self._nearest(at))
        elif self.how.antialias:
            result = self._averaged(x, at)
        else:
            result = self._weight_neighbours(x, at)
        if self.how.mode != CROP:
            return result
        emit = self.b.emit
        last = self._number(dims.sub(self.move.extent, 1))
        inside = emit("logical_and", emit("less_equal", _of(0), at), emit("less_equal", at, last))
        beyond = const(self.how.extrapolation, info_of(x).dtype or _WIDE)
        return emit("where", self._beside(inside, x), result, beyond)

    # --- coordinates --------------------------------------------------------------------

    def _coordinates(self) -> Expr:
        """The coordinate in the operand of each point of the result."""
        emit, how, move = self.b.emit, self.how, self.move
        points = emit("arange", PrimValue(move.target), dtype=_WIDE)
        extent, scale = self._number(move.extent), self._scale()
        width = emit("multiply", scale, extent)
        one, half = _of(1), _of(0.5)
        if how.mode == "asymmetric":
            return emit("divide", points, scale)
        centers = emit("divide", emit("add", points, half), scale)
        if how.mode == "tf_half_pixel_for_nn":
            return centers
        if how.mode in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"):
            at = emit("subtract", centers, half)
            if how.mode == "half_pixel":
                return at
            if how.mode == "pytorch_half_pixel":
                return emit("where", emit("greater", width, one), at, _of(0))
            ratio = emit("divide", self._number(move.target), width)
            center = emit("multiply", extent, half)
            return emit("add", at, emit("multiply", center, emit("subtract", one, ratio)))
        if how.mode not in ("align_corners", CROP):
            raise ModelError(f"its coordinate_transformation_mode is {how.mode!r}")
        last = emit("subtract", extent, one)
        is_point = emit("equal", width, one)
        steps = emit("where", is_point, one, emit("subtract", width, one))
        if how.mode == "align_corners":
            return emit("divide", emit("multiply", points, last), steps)
        start, end = (_expr(bound) for bound in move.region)
        span = emit("multiply", emit("subtract", end, start), last)
        spread = emit("divide", emit("multiply", points, span), steps)
        middle = emit("multiply", span, half)
        offset = emit("where", is_point, middle, spread)
        return emit("add", offset, emit("multiply", start, last))

    def _scale(self) -> Expr:
        scale = self.move.scale
        if scale is None:
            target, extent = self._number(self.move.target), self._number(self.move.extent)
            return self.b.emit("divide", target, extent)
        return _expr(scale)

    def _number(self, dim: Dim) -> Expr:
        """An extent as a tensor of rank 0."""
        if isinstance(dim, int):
            return _of(dim)
        if dims.prove_ge(dim, 0):
            shape = self.b.emit("shape_to_tensor", ShapeExpr((dim,)))
            single = self.b.emit("reshape", shape, ShapeExpr(()))
            return self.b.cast(single, _WIDE)
        return self.b.emit("subtract", self._number(dims.add(dim, 1)), _of(1))

    # --- elements -----------------------------------------------------------------------

    def _nearest(self, at: Expr) -> Expr:
        emit, rounding = self.b.emit, self.how.rounding
        if rounding == "round_prefer_floor":
            return emit("ceil", emit("subtract", at, _of(0.5)))
        if rounding == "round_prefer_ceil":
            return emit("floor", emit("add", at, _of(0.5)))
        if rounding not in ("floor", "ceil"):
            raise ModelError(f"its nearest_mode is {rounding!r}")
        return emit(rounding, at)

    def _take(self, x: Expr, places: Expr) -> Expr:
        """The elements at integral `places`, clamped to the axis."""
        emit = self.b.emit
        last = self._number(dims.sub(self.move.extent, 1))
        inside = emit("maximum", emit("minimum", places, last), _of(0))
        return emit("take", x, self.b.cast(inside, "int64"), axis=self.move.axis, mode="clip")

    def _weight_neighbours(self, x: Expr, at: Expr) -> Expr:
        """The weighted sum of two neighbours, or four for a cubic."""
        emit, axis = self.b.emit, self.move.axis
        before, after = (0, 1) if self.how.method == "linear" else (-1, 2)
        offsets = const([float(k) for k in range(before, after + 1)], _WIDE)
        places = emit("add", emit("expand_dims", emit("floor", at), axis=1), offsets)
        apart = emit("subtract", emit("expand_dims", at, axis=1), places)
        weights = self._weight(emit("abs", apart))
        if self.how.exclude:
            weights = emit("where", self._exists(places), weights, _of(0))
            total = emit("sum", weights, axis=1, keepdims=True)
            some = emit("where", emit("equal", total, _of(0)), _of(1), total)
            weights = emit("divide", weights, some)
        terms = emit("multiply", self._take(x, places), self._beside(weights, x))
        return emit("sum", terms, axis=axis + 1)

    def _exists(self, place: Expr) -> Expr:
        emit, extent = self.b.emit, self._number(self.move.extent)
        return emit("logical_and", emit("less_equal", _of(0), place), emit("less", place, extent))

    def _weight(self, distance: Expr) -> Expr:
        """The weight of an element by its distance: linear, or cubic convolution (Keys, 1981)."""
        emit, a = self.b.emit, self.how.alpha
        one = _of(1)
        if self.how.method == "linear":
            return emit("maximum", emit("subtract", one, distance), _of(0))
        near = self._polynomial(distance, (a + 2, -(a + 3), 0, 1))
        far = self._polynomial(distance, (a, -5 * a, 8 * a, -4 * a))
        is_near = emit("less_equal", distance, one)
        is_far = emit("less", distance, _of(2))
        return emit("where", is_near, near, emit("where", is_far, far, _of(0)))

    def _polynomial(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        value: Expr = _of(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.b.emit("add", self.b.emit("multiply", value, x), _of(coefficient))
        return value

    def _averaged(self, x: Expr, at: Expr) -> Expr:
        """The weighted mean of all elements that a point of the result represents.

        The weights are a matrix of points by elements.  An axis shrinks to one element at least,
        and a cubic reads two elements of the result on each side, so all elements are within
        `reach` of the ends; elements beyond the ends repeat the end, unless they are excluded.
        """
        emit, move = self.b.emit, self.move
        narrow = emit("minimum", self._scale(), _of(1))
        reach: Dim = 0 if self.how.exclude else dims.add(dims.mul(move.extent, 3), 3)
        count = dims.add(move.extent, dims.mul(reach, 2))
        numbers = emit("arange", PrimValue(count), dtype=_WIDE)
        places = emit("subtract", numbers, self._number(reach))
        apart = emit("subtract", emit("expand_dims", at, axis=1), places)
        weights = self._weight(emit("abs", emit("multiply", apart, narrow)))
        total = emit("sum", weights, axis=1, keepdims=True)
        rank, axis = info_of(x).ndim, move.axis
        order = (*(k for k in range(rank) if k != axis), axis)
        back = (*range(axis), rank - 1, *range(axis, rank - 1))
        rows = emit("permute_dims", self._take(x, places), axes=order)
        matrix = emit("permute_dims", emit("divide", weights, total))
        return emit("permute_dims", emit("matmul", rows, matrix), axes=back)

    def _beside(self, values: Expr, x: Expr) -> Expr:
        """`values`, whose first axis is that of `x`, with unit axes for the later axes of `x`."""
        own, behind = info_of(values).ndim, info_of(x).ndim - 1 - self.move.axis
        axes = tuple(range(own, own + behind))
        return self.b.emit("expand_dims", values, axis=axes) if axes else values


def _of(value: float) -> Expr:
    return const(value, _WIDE)


def _expr(value: float | Expr) -> Expr:
    return value if isinstance(value, Expr) else _of(value)
