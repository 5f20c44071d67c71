"""Sizes of tiles, strips, pieces and blocks of matrix products, by the description of a machine.

Products are of numbers of `bits`, 32 or 64.
"""

from dataclasses import dataclass
from functools import cache

from relax_egraph.lower.emit.machine import Machine

BLOCK_COLUMNS = 64
"""The columns of a block of a result: a multiple of those of each micro-kernel, so that blocks are
the same, whatever the machine."""

FEWEST_BLOCK_ROWS, MOST_BLOCK_ROWS = 48, 96
"""The minimal rows of a block, which share what is read of the right operand, and the maximal ones:
with more, threads would share too few blocks."""

FLOAT = 32
"""The bits of float32, which narrow elements are multiplied in."""


@dataclass(frozen=True, slots=True)
class MicroTile:
    """The block of a result that a micro-kernel keeps in registers: `rows` by `vectors`."""

    rows: int
    vectors: int


@cache
def micro_tile(machine: Machine, bits: int = FLOAT) -> MicroTile:
    """The tile with the fewest loads for each multiply-add, of those that the registers hold.

    A step reads `vectors` of the right operand and a number of the left one for each row; beside
    the sums, registers hold the former and one of the latter, or a vector of these for each row if
    the machine multiplies by lane.  The columns divide a cache line, or are whole lines.
    """
    lanes, line = machine.lanes(bits), machine.line_of(bits)
    tiles: list[MicroTile] = []
    vectors = 1
    while vectors * lanes <= BLOCK_COLUMNS:
        if machine.multiplies_by_lane:
            rows = (machine.registers - vectors) // (vectors + 1)
        else:
            rows = (machine.registers - vectors - 1) // vectors
        if rows >= 1 and (vectors * lanes) % line in (0, vectors * lanes):
            tiles.append(MicroTile(rows, vectors))
        vectors *= 2
    return min(tiles, key=lambda t: (t.rows + t.vectors) / (t.rows * t.vectors))


def strip(machine: Machine, bits: int = FLOAT) -> int:
    """The columns of a strip of a packed right operand of elements of `bits`.

    A strip is as wide as the micro-kernel, which then reads it in order, but a cache line at least.
    """
    number, line = max(bits, FLOAT), machine.line_of(bits)
    columns = micro_tile(machine, number).vectors * machine.lanes(number)
    return line if columns <= line else BLOCK_COLUMNS


FEWEST_STEPS, MOST_STEPS = 256, 1024
"""The minimal and maximal steps of the depth that run at once.

After each piece of the depth the sums are written to memory, and read for the next one.
"""

PAGES = 512
"""The maximal steps if each row of the right operand is in another page of memory."""


def piece(machine: Machine, bits: int = FLOAT) -> int:
    """The steps of the depth that run at once: as many as the second-level cache holds of a block.

    Fewer rows of the left operand are in it for more steps.  The right operand, of which a strip is
    larger than the first-level cache, is read from there, too: a step of a micro-kernel takes
    longer than that.
    """
    steps = _block_of_left(machine, bits) // FEWEST_BLOCK_ROWS
    return min(MOST_STEPS, max(FEWEST_STEPS, steps))


def block_rows(machine: Machine, bits: int = FLOAT, columns: int = BLOCK_COLUMNS) -> int:
    """The rows of a block: whole tiles, which the second-level cache holds for all `columns`."""
    rows = _block_of_left(machine, bits) // piece(machine, bits)
    most = max(FEWEST_BLOCK_ROWS, MOST_BLOCK_ROWS * BLOCK_COLUMNS // columns)
    tall = micro_tile(machine, bits).rows
    return max(1, min(most, rows) // tall) * tall


def _block_of_left(machine: Machine, bits: int) -> int:
    """The elements of the left operand that the second-level cache holds."""
    return machine.second.size * 3 // bits


ROWS_OF_COPY = 12
"""The minimal rows for each lane for which copying the right operand costs little beside them."""


def copied_from(machine: Machine, bits: int = FLOAT) -> tuple[int, int]:
    """The rows, and the elements of a right operand, from which it pays to copy it to strips.

    Its rows are far apart, often by a power of two, so they share a few sets of a cache.  A
    micro-kernel that is a cache line wide reads the first-level cache, or waits; a wider one reads
    several adjacent lines of each row, from the second-level cache.
    """
    is_wide = strip(machine, bits) > machine.line_of(bits)
    largest = 2 * machine.second.size if is_wide else machine.first.size
    return ROWS_OF_COPY * machine.lanes(bits), 8 * largest // bits


FEWEST_PANELS = 8
"""The minimal panels of a right operand that are wider than a block: threads share them."""


def panel_columns(machine: Machine, columns: int, bits: int = FLOAT) -> int:
    """The columns of a right operand that are copied at once, of `columns` of elements of `bits`.

    The left operand is read once for each panel, in rows that are far apart, while a panel is read
    in order; so panels of float32 are two blocks wide where a block is several strips.
    """
    wide = 2 * BLOCK_COLUMNS * FLOAT // max(bits, FLOAT)
    is_wide = strip(machine, bits) < BLOCK_COLUMNS and columns >= FEWEST_PANELS * wide
    return wide if is_wide else BLOCK_COLUMNS


def streamed_rows(machine: Machine, bits: int = FLOAT) -> int:
    """The maximal rows for which a large right operand is read row by row, not by tiles.

    A narrow tile reads a line of each row, far apart, for few multiplications.
    """
    return 1 if strip(machine, bits) > machine.line_of(bits) else 3
