"""Stores of the first lanes of a vector, without masks: in parts of 8, 4, 2 lanes and 1.

Where masks are no registers, processors take tens of cycles for a masked store.
"""

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.vector import lane, shuffle


def store_first(f: Function, value: Value, pointer: Value, count: int | Value) -> None:
    """Store the first `count` lanes of `value` at `pointer`, at most all of them."""
    if isinstance(count, int):
        _store_constant(f, value, pointer, count)
        return
    with f.either(f.compare(">=", count, value.type.lanes)) as (whole, part):
        with whole:
            f.store(value, pointer)
        with part:
            _store_fewer(f, value, pointer, count)


def _store_constant(f: Function, value: Value, pointer: Value, count: int) -> None:
    size, start = value.type.lanes, 0
    while start < count:
        while size > count - start:
            size //= 2
        place = f.address(pointer, start, value.type)
        f.store(_part(value, start, size), place)
        start += size


def _store_fewer(f: Function, value: Value, pointer: Value, count: Value) -> None:
    """Store the first `count` lanes, fewer than all."""
    rest = value
    while rest.type.lanes > 1:
        half = rest.type.lanes // 2
        low, high = _part(rest, 0, half), _part(rest, half, half)
        size = count & half
        has = f.compare("!=", size, 0)
        with f.when(has):
            f.store(low, pointer)
        rest, pointer = f.select(has, high, low), f.address(pointer, size, value.type)


def _part(value: Value, start: int, lanes: int) -> Value:
    return lane(value, start) if lanes == 1 else shuffle(value, value, range(start, start + lanes))
