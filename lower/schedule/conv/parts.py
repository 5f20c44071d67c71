"""Common parts of schedules of convolutions: data with channels last, panels, statements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.movement import nest
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.lower.schedule.strips import Strips, strip_of
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    TirExpr,
    TirVar,
    as_expr,
    binary,
    from_dim,
)
from relax_egraph.tir.stmt import BlockAxis, For, Stmt, Store, TensorIntrinsic, TirBlock

PANEL = 64
"""The features that are computed at once: four vectors of the widest."""

FLOAT_ZERO = Imm(0.0, "float32")

Size = tuple[TirExpr, TirExpr]
"""The numbers of rows and columns."""


@dataclass(frozen=True, slots=True)
class Source:
    """Data that a convolution reads from an `image` on; `places` are as in `Convolution`."""

    buffer: Buffer
    places: tuple[int, ...]
    image: TirExpr = ZERO

    @classmethod
    def of(cls, c: Convolution) -> "Source":
        """The data of `c` in its own layout."""
        return cls(c.data, c.places, c.image)

    @property
    def channels_last(self) -> bool:
        """Whether the channels of a place are adjacent."""
        batch, channel, *positions = self.places
        return (batch, *positions, channel) == (*range(len(self.places)),)

    @property
    def strides(self) -> tuple[Dim, Dim]:
        """The distance of adjacent places, with channels or places last, and of channels."""
        _, channel, *positions = self.places
        if self.channels_last:
            return self.buffer.shape[channel], 1
        return 1, dims.product(self.buffer.shape[k] for k in positions)

    @property
    def places_last(self) -> bool:
        """Whether the places of a line are adjacent, and those of each channel contiguous."""
        return self.places == (*range(len(self.places)),)

    def at(self, batch: TirExpr, positions: Sequence[TirExpr], channel: TirExpr) -> BufferLoad:
        """The element of an image at `positions`, of a `channel`."""
        order = dict(zip(self.places, (self.image + batch, channel, *positions), strict=True))
        return BufferLoad(self.buffer, tuple(order[k] for k in range(len(order))))


def channels_last(c: Convolution, names: Names) -> tuple[Source, Stmt | None]:
    """Data with channels last, and the copy to that layout, if any."""
    source = Source.of(c)
    if source.channels_last:
        return source, None
    _, channel, *positions = (c.data.shape[k] for k in c.places)
    copy = Buffer(names.fresh("last"), (c.batch.extent, *positions, channel), "float32")
    axes = tuple(Axis(names.var("i"), d) for d in copy.shape)
    at = tuple(a.var for a in axes)
    b, *moved, k = at
    stage = Stage("channels_last", copy, axes, at, source.at(b, moved, k))
    return Source(copy, (0, len(at) - 1, *range(1, len(at) - 1))), nest(stage, names)


@dataclass(frozen=True, slots=True)
class Panels:
    """The `features` of a group in panels of one `width`, the last of which may be narrower.

    A wide panel is cut into strips, which are cache lines wide; a narrow one is a single strip.
    """

    features: Dim
    width: int

    @classmethod
    def of(cls, c: Convolution) -> "Panels":
        """The panels of `c`."""
        is_narrow = isinstance(c.features, int) and c.features < PANEL
        return cls(c.features, max(1, int(c.features)) if is_narrow else PANEL)

    @property
    def count(self) -> Dim:
        """The number of panels."""
        return dims.floordiv(dims.add(self.features, self.width - 1), self.width)

    @property
    def is_narrow(self) -> bool:
        """Whether there are too few features for strips."""
        return self.width < PANEL

    @property
    def strip(self) -> int:
        """The features of a strip."""
        return self.width if self.is_narrow else strip_of("float32")

    @property
    def strips(self) -> int:
        """The strips of a panel."""
        return self.width // self.strip

    def of_depth(self, depth: Dim) -> Strips:
        """The strips of a panel of `depth` rows."""
        return Strips(depth, self.strip, "float32")

    def columns(self, panel: TirExpr) -> TirExpr:
        """The number of features of the panel with the number `panel`."""
        if dims.divides(self.width, self.features):
            return Imm(self.width, "int64")
        return binary("min", self.width, from_dim(self.features) - panel * self.width)

    def each_strip(
        self, panel: TirExpr, body: Callable[[TirExpr, TirExpr, TirExpr], Stmt], names: Names
    ) -> Stmt:
        """A loop over the strips of a `panel`: `body` is of strip, first feature, and count."""
        first = panel * self.width
        if self.is_narrow:
            return body(ZERO, first, self.columns(panel))
        s = names.var("s")
        count = as_expr(self.strip)
        if not dims.divides(self.strip, self.features):
            left = from_dim(self.features) - first - s * self.strip
            count = binary("min", self.strip, left)
        strips = (self.columns(panel) + (self.strip - 1)) // self.strip
        return serial([(s, strips)], body(s, first + s * self.strip, count))

    def fill(
        self, panel: TirExpr, row: Callable[[TirExpr, TirVar, TirExpr], Stmt], names: Names
    ) -> Stmt:
        """Loops over the features of a `panel`: the body is `row` of strip, place and feature."""

        def strip(s: TirExpr, first: TirExpr, count: TirExpr) -> Stmt:
            return along(j, count, row(s, j, first + j))

        j = names.var("j")
        return self.each_strip(panel, strip, names)


def turns(extent: Dim, prefix: str, names: Names) -> tuple[TirExpr, tuple[Axis, ...]]:
    """The index of a loop over `extent`, and the loop, which is omitted for a single iteration."""
    if extent == 1:
        return ZERO, ()
    var = names.var(prefix)
    return var, (Axis(var, extent),)


def equal_parts(extent: Dim, most: int) -> int:
    """The size of parts of at most `most`; equal parts if `extent` is constant."""
    if not isinstance(extent, int) or extent <= 0:
        return most
    return -(-extent // -(-extent // most))


def let(names: Sequence[TirVar], values: Sequence[TirExpr], body: Stmt) -> Stmt:
    """`body` with `names` bound to `values`."""
    one = Imm(1, "int64")
    pairs = zip(names, values, strict=True)
    return TirBlock("at", tuple(BlockAxis(v, one, "spatial", e) for v, e in pairs), body)


def tests(place: TirExpr, extent: Dim) -> tuple[TirExpr, TirExpr]:
    """The conditions that `place` is at least 0, and below `extent`."""
    return Binary(">=", place, ZERO), Binary("<", place, from_dim(extent))


def all_of(conditions: Sequence[TirExpr]) -> TirExpr:
    """The conjunction of `conditions`, of at least one."""
    return reduce(lambda a, b: Binary("and", a, b), conditions)


def within(places: Sequence[tuple[TirExpr, Dim]]) -> TirExpr:
    """The condition that each place is within its extent."""
    return all_of([test for place, extent in places for test in tests(place, extent)])


def store(place: BufferLoad, value: TirExpr) -> Store:
    """``place = value``."""
    return Store(place.buffer, place.indices, value)


def along(var: TirVar, extent: TirExpr, body: Stmt) -> For:
    """A vectorized loop of `body` over `var`."""
    return For(var, extent, "vectorized", body)


def serial(axes: Sequence[tuple[TirVar, TirExpr]], body: Stmt) -> Stmt:
    """Nested loops of `body` over the variables, the last one innermost."""
    for var, extent in reversed(axes):
        body = For(var, extent, "serial", body)
    return body


def gemm(
    a: BufferLoad,
    b: BufferLoad,
    c: BufferLoad,
    panels: Panels,
    depth: Dim,
    strides: tuple[Dim, Dim, Dim],
    size: tuple[TirExpr, TirExpr, TirExpr],
    adds: TirExpr = ZERO,
    ahead: TirExpr = ZERO,
) -> Stmt:
    """``c = a · b`` by the micro-kernel, added to `c` unless `adds` is 0.

    `b` is one of the `panels` of `depth` rows; `strides` are those of the rows of `a`, of steps of
    the depth in it, 1 if panels are narrow, and of the rows of `c`; `size` is rows, columns and
    steps.  The next right operand begins `ahead` elements after `b`.
    """
    places = tuple((load.buffer, load.indices) for load in (a, b, c))
    of_a, step, of_c = map(from_dim, strides)
    one, strips = Imm(1, "int64"), panels.of_depth(depth)
    of_b = (from_dim(strips.width), from_dim(strips.line))
    if panels.is_narrow:
        scalars = (of_a, ZERO, ZERO, *of_b, of_c, *size[:2], one, one, size[2], adds)
        return TensorIntrinsic("window_tile", places, scalars)
    scalars = (of_a, step, *of_b, of_c, *size, adds, ahead)
    return TensorIntrinsic("gemm_tile", places, scalars)


def transpose(a: BufferLoad, b: BufferLoad, strides: tuple[Dim, Dim], size: Size) -> Stmt:
    """``b = aᵀ`` by the micro-kernel; `size` is that of `a`, `strides` are those of rows."""
    places = tuple((load.buffer, load.indices) for load in (a, b))
    return TensorIntrinsic("transpose_32", places, (*map(from_dim, strides), *size))


def unflatten(number: TirExpr, axes: Sequence[Axis]) -> list[TirExpr]:
    """The values of `axes` in iteration `number` of their nest."""
    indices: list[TirExpr] = []
    for k, axis in enumerate(axes):
        inner = dims.product(a.extent for a in axes[k + 1 :])
        part = binary("//", number, from_dim(inner))
        indices.append(binary("%", part, from_dim(axis.extent)) if k else part)
    return indices
