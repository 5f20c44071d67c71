"""Strips of a result, which are cut into blocks of rows for micro-kernels."""

from collections.abc import Callable

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value


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
