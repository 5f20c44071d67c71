"""Transposes of matrix blocks, by square tiles in registers: ``transpose_32`` and others.

There is one routine for each element size.  A tile has as many rows as a vector has lanes, at most
16; it is transposed in log₂ rounds, which exchange halves between pairs of rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I64, PTR, IntrinsicEmitter, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes, masked_load, masked_store, shuffle

PARAMS: tuple[Type, ...] = (PTR, PTR, I64, I64, I64, I64)
"""``a, b, a_row, b_row, rows, columns``."""

MOST_LANES = 16

SIZES = (8, 16, 32, 64)
"""The sizes of elements, in bits."""


def name_of(bits: int) -> str:
    """The name of the routine for elements of `bits`."""
    return f"transpose_{bits}"


def _definition(bits: int) -> IntrinsicEmitter:
    def define_transpose(module: Module, target: Target) -> None:
        """Add ``transpose_<bits>(a, b, a_row, b_row, rows, columns)``.

        ``b[j·b_row + i] = a[i·a_row + j]`` for ``i < rows``, ``j < columns``.  `a` and `b` do not
        overlap; no other elements are read or written.
        """
        f = Function(module, name_of(bits), PARAMS)
        a, b, a_row, b_row, rows, columns = f.args
        lanes = min(MOST_LANES, target.lanes(bits))
        element = Type(f"i{bits}")
        with f.loop(0, rows, lanes) as down, f.loop(0, columns, lanes) as across:
            i, j = (
                _start(at, size, lanes)
                for at, size in ((down.index, rows), (across.index, columns))
            )
            source = f.address(a, i * a_row + j, element)
            result = f.address(b, j * b_row + i, element)
            height, width = f.minimum(rows - i, lanes), f.minimum(columns - j, lanes)
            tile = _Tile(source, result, a_row, b_row, element.of(lanes))
            with f.either(f.compare("==", height + width, 2 * lanes)) as (whole, edge):
                with whole:
                    tile.whole()
                with edge:
                    if target.has_masks:
                        tile.under_masks(height, width)
                    else:
                        tile.one_by_one(height, width)
        f.finish()

    return define_transpose


def _start(index: Value, size: Value, lanes: int) -> Value:
    """Where the square for `index` begins: the last of several is whole, and overlaps another."""
    f = index.function
    return f.maximum(f.minimum(index, size - lanes), 0)


@dataclass(frozen=True, slots=True)
class _Tile:
    """A square at `source`, whose rows are vectors of `type`, and its place in `result`."""

    source: Value
    result: Value
    a_row: Value
    b_row: Value
    type: Type

    def whole(self) -> None:
        """Transpose the whole square."""
        f = self.source.function
        rows = [f.load(self._row(i), self.type) for i in range(self.type.lanes)]
        for j, column in enumerate(_transposed(rows)):
            f.store(column, self._column(j))

    def under_masks(self, height: Value, width: Value) -> None:
        """Transpose the first `height` rows by `width` columns.

        Absent rows get the address of the first one: an access to unmapped memory takes hundreds of
        cycles even if no lane is on.
        """
        f, lanes = self.source.function, self.type.lanes
        in_row, in_column = first_lanes(f, width, lanes), first_lanes(f, height, lanes)
        rows: list[Value] = []
        for i in range(lanes):
            exists = f.compare("<", i, height)
            place = f.address(self.source, f.select(exists, self.a_row * i, 0), self.type)
            rows.append(masked_load(place, self.type, _where(exists, in_row)))
        for j, column in enumerate(_transposed(rows)):
            exists = f.compare("<", j, width)
            place = f.address(self.result, f.select(exists, self.b_row * j, 0), self.type)
            masked_store(column, place, _where(exists, in_column))

    def one_by_one(self, height: Value, width: Value) -> None:
        """Transpose the first `height` rows by `width` columns without masks."""
        f, element = self.source.function, self.type.scalar
        with f.loop(0, height) as down, f.loop(0, width) as across:
            i, j = down.index, across.index
            item = f.load(f.address(self.source, i * self.a_row + j, element), element)
            f.store(item, f.address(self.result, j * self.b_row + i, element))

    def _row(self, number: int) -> Value:
        return self.source.function.address(self.source, self.a_row * number, self.type)

    def _column(self, number: int) -> Value:
        return self.source.function.address(self.result, self.b_row * number, self.type)


def _where(condition: Value, mask: Value) -> Value:
    """`mask` if `condition` holds, else no lane: by bits, since a select would become a branch."""
    f, bits = mask.function, Type(f"i{mask.type.lanes}")
    on = f.emit(bits, f"bitcast {mask} to {bits}") & f.convert("sext", condition, bits)
    return f.emit(mask.type, f"bitcast {on} to {mask.type}")


def _transposed(rows: Sequence[Value]) -> list[Value]:
    """The columns of a square of vectors."""
    size, lines = len(rows), list(rows)
    distance = size // 2
    while distance:
        for i in range(size):
            if i & distance:
                continue
            upper, lower = lines[i], lines[i + distance]
            low = [e if not e & distance else size + e - distance for e in range(size)]
            high = [e + distance if not e & distance else size + e for e in range(size)]
            lines[i] = shuffle(upper, lower, low)
            lines[i + distance] = shuffle(upper, lower, high)
        distance //= 2
    return lines


TRANSPOSES: Mapping[str, IntrinsicEmitter] = {name_of(bits): _definition(bits) for bits in SIZES}
"""The emitter of each routine, by name."""
