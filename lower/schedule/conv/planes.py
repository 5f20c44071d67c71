"""Depthwise convolutions of planes: data and results whose lines are contiguous.

A band of lines of a channel is copied into the nearest cache, with its padding.  There every tap
of every position exists: the sum of a line is an expression of all taps, vector by vector.
"""

from dataclasses import dataclass, field
from functools import reduce

from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.depthwise import is_depthwise
from relax_egraph.lower.schedule.conv.parts import (
    FLOAT_ZERO,
    Source,
    along,
    serial,
    store,
    turns,
    within,
)
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.loops import ZERO, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Imm, Intrinsic, TirExpr, from_dim
from relax_egraph.tir.stmt import IfThenElse, Stmt, TirBlock, seq

SHORTEST = 20
"""The minimal positions of a line; of shorter ones, vectors of channels are filled better."""

FEW_TAPS, SHORTEST_OF_FEW, SHORTEST_STRIDED = 9, 8, 12
"""The same for windows of few taps, which take less time than copies to channels last and back."""

MOST_TAPS = 49
"""The maximal taps of a window."""

ELEMENTS = 1 << 12
"""The elements of a band, unless a single block of lines needs more."""

LARGEST = 1 << 14
"""The maximal elements of a band, which is on the stack."""

WHOLE = 8
"""The positions of a line that are computed are a multiple of this."""


def sees_lines(c: Convolution, results: Results) -> bool:
    """Whether `c` is depthwise, of constant extents, and stays in planes with long lines."""
    if not is_depthwise(c) or c.is_transposed or len(c.windows) != 2:
        return False
    if not Source.of(c).places_last or results.stage.indices[-1] is not c.positions[-1].var:
        return False
    numbers = [n for w in c.windows for n in (w.position.extent, w.size, w.extent)]
    if not all(isinstance(n, int) and n > 0 for n in numbers):
        return False
    down, across = map(_Extents.of, c.windows)
    fits = down.seen(_together(down.positions)) * across.stride * across.width <= LARGEST
    taps = down.size * across.size
    shortest = SHORTEST_OF_FEW if across.window.stride == 1 else SHORTEST_STRIDED
    if taps > FEW_TAPS:
        shortest = SHORTEST
    return fits and across.positions >= shortest and taps <= MOST_TAPS


@dataclass(frozen=True, slots=True)
class _Extents:
    """A window of constant extents: of its `positions`, its `size`, and the data."""

    window: Window
    positions: int
    size: int
    data: int

    @classmethod
    def of(cls, w: Window) -> "_Extents":
        positions, size, data = w.position.extent, w.size, w.extent
        assert isinstance(positions, int)
        assert isinstance(size, int)
        assert isinstance(data, int)
        return cls(w, positions, size, data)

    def seen(self, positions: int) -> int:
        """The places that the windows at adjacent `positions` see, with those between them."""
        reach = (self.size - 1) * self.window.dilation + 1
        return (positions - 1) * self.window.stride + reach

    @property
    def whole(self) -> int:
        """The positions in whole vectors."""
        return -(-self.positions // WHOLE) * WHOLE

    @property
    def stride(self) -> int:
        """The stride of the window."""
        return self.window.stride

    @property
    def width(self) -> int:
        """The places in a phase of a line: each `stride`-th of those that the windows see."""
        return self.whole + (self.size - 1) * self.window.dilation // self.stride


def by_planes(c: Convolution, results: Results, names: Names) -> Stmt:
    """The convolution of planes, channel by channel."""
    b, batch = turns(c.batch.extent, "b", names)
    f, channels = turns(c.groups, "f", names)
    down, across = map(_Extents.of, c.windows)
    rows = _together(down.positions)
    line = across.stride * across.width
    most = (ELEMENTS // line - down.seen(1)) // down.stride + 1
    lines = cut(down.positions, max(rows, most // rows * rows), "io", names)
    shape = (down.seen(lines.size), across.stride, across.width)
    band = Buffer(names.fresh("band"), shape, "float32", "local")
    planes = _Planes(c, results, names, (down, across), lines, band, (b, f))
    y = names.var("y")
    clear = serial([(y, from_dim(shape[0]))], planes.cleared(y))
    body = serial(
        [(axis.var, from_dim(axis.extent)) for axis in lines.blocks],
        seq(planes.filled(), planes.sums(rows)),
    )
    block = TirBlock("plane", (), seq(clear, body), allocs=(band,))
    return parallel((*batch, *channels), block)


def _together(lines: int) -> int:
    """The lines whose sums share the weights in registers: a divisor of all `lines`."""
    return next(n for n in (4, 3, 2, 1) if lines % n == 0)


@dataclass(frozen=True, slots=True)
class _Planes:
    """A `band` of the data of a plane `at` a batch and a channel, for some `lines` of results.

    Its lines are in phases, each of which has the places at a distance of the stride: adjacent
    positions read adjacent places.
    """

    c: Convolution
    results: Results
    names: Names
    extents: tuple[_Extents, _Extents]
    lines: Cut
    band: Buffer
    at: tuple[TirExpr, TirExpr]

    def cleared(self, line: TirExpr) -> Stmt:
        """A `line` of zeros."""
        p, x = self.names.var("p"), self.names.var("x")
        _, phases, width = map(from_dim, self.band.shape)
        return serial([(p, phases)], along(x, width, store(self.band[line, p, x], FLOAT_ZERO)))

    def filled(self) -> Stmt:
        """The lines of data that the lines of results see; those outside data are zeros."""
        down, _ = self.extents
        y = self.names.var("y")
        first = self.lines.start * down.stride - down.window.before
        inside = within([(first + y, down.data)])
        count = (self.lines.count - 1) * down.stride + down.seen(1)
        phases = (self._phase(p, y, first + y) for p in range(self.extents[1].stride))
        return serial([(y, count)], IfThenElse(inside, seq(*phases), self.cleared(y)))

    def _phase(self, phase: int, line: TirExpr, at: TirExpr) -> Stmt:
        """The places of a `phase` of a `line`, from the line of data `at`."""
        _, across = self.extents
        (batch, channel), skipped = self.at, across.window.before - phase
        first, end = (-(-n // across.stride) for n in (skipped, across.data + skipped))
        first, end = max(0, first), min(end, across.width)
        x = self.names.var("x")
        place = (first + x) * across.stride - skipped
        element = Source.of(self.c).at(batch, (at, place), channel)
        copied = store(self.band[line, phase, first + x], element)
        return along(x, from_dim(max(0, end - first)), copied)

    def sums(self, rows: int) -> Stmt:
        """The results of all lines, some `rows` at once."""
        _, across = self.extents
        block, x, r = self.names.var("y"), self.names.var("x"), self.names.var("r")
        sums = Buffer(self.names.fresh("sums"), (rows, across.whole), "float32", "local")
        taps = _Taps(self, block * rows, x)
        added = [store(sums[k, x], taps.sum(k)) for k in range(rows)]
        (of_down, of_across), (batch, channel) = self.c.positions, self.at
        place = self.names.var("x")
        point = {
            self.c.batch.var: batch,
            self.c.feature.var: channel,
            of_down.var: self.lines.start + (block * rows + r),
            of_across.var: place,
        }
        stores = along(place, from_dim(across.positions), self.results.of(sums[r, place], point))
        body = seq(
            along(x, from_dim(across.whole), seq(*added)), serial([(r, Imm(rows, "int64"))], stores)
        )
        return serial(
            [(block, self.lines.count // rows)], TirBlock("lines", (), body, allocs=(sums,))
        )


@dataclass(slots=True)
class _Taps:
    """The sums of lines from `first` on at `x`: they share their loads, which are nodes of one."""

    planes: _Planes
    first: TirExpr
    x: TirExpr
    loads: dict[tuple[int, int], BufferLoad] = field(
        default_factory=dict[tuple[int, int], BufferLoad]
    )
    weights: dict[tuple[int, int], TirExpr] = field(default_factory=dict[tuple[int, int], TirExpr])

    def sum(self, line: int) -> TirExpr:
        """The sum over all taps, which are those of a line, then those of the next."""
        down, across = self.planes.extents
        lines: list[TirExpr] = []
        for k in range(down.size):
            total: TirExpr = Binary("*", self._weight(k, 0), self._load(line, k, 0))
            for j in range(1, across.size):
                total = Intrinsic("fma", (self._weight(k, j), self._load(line, k, j), total))
            lines.append(total)
        return reduce(lambda a, b: Binary("+", a, b), lines)

    def _load(self, line: int, k: int, j: int) -> BufferLoad:
        down, across = (e.window for e in self.planes.extents)
        place = line * down.stride + k * down.dilation, j * across.dilation
        if place not in self.loads:
            shift, phase = divmod(place[1], across.stride)
            at = self.first * down.stride + place[0], Imm(phase, "int64"), self.x + shift
            self.loads[place] = self.planes.band[at]
        return self.loads[place]

    def _weight(self, k: int, j: int) -> TirExpr:
        if (k, j) not in self.weights:
            taps = (Imm(k, "int64"), Imm(j, "int64"))
            self.weights[k, j] = self.planes.c.weight_at(self.planes.at[1], ZERO, taps)
        return self.weights[k, j]
