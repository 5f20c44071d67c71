"""Strips of a result, which are cut into blocks of rows for micro-kernels."""

from collections.abc import Callable, Iterator, Sequence

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32


def balanced(f: Function, rows: Value, tallest: int) -> tuple[Value, Callable[[Value], Value]]:
    """The number of blocks of `rows`, and the height of each block by its number.

    There are as few blocks of at most `tallest` rows as possible, of heights that differ by 1.
    """
    count = f.binary("udiv", rows + (tallest - 1), tallest)
    height = f.binary("udiv", rows, f.maximum(count, 1))
    taller = rows - height * count

    def height_of(number: Value) -> Value:
        return f.select(f.compare("<", number, taller), height + 1, height)

    return count, height_of


def in_blocks(
    f: Function, rows: Value, tallest: int, *moving: tuple[Value, Value]
) -> Iterator[tuple[int, Value, Sequence[Value]]]:
    """Write the blocks of `rows`, one below the other, in an iteration for each height.

    It has the height, as a number and as a value, and the places of the block: `moving` are
    pointers to floats, and the distances of their rows.
    """
    count, height_of = balanced(f, rows, tallest)
    with f.loop(0, count, 1, [pointer for pointer, _ in moving]) as down:
        own = height_of(down.index)
        for height in range(1, tallest + 1):
            with f.when(f.compare("==", own, height)):
                yield height, own, down.values
        pairs = zip(down.values, moving, strict=True)
        down.carry(*(f.address(place, own * distance, F32) for place, (_, distance) in pairs))
