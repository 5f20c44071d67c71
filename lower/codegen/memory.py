"""Loads and stores of buffers: one element, a contiguous vector, or a gather.

The kind of access follows from how the offset varies over the lanes.
"""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir.dtypes import is_stored
from relax_egraph.lower.codegen.index import Index, Ramp, Repeated, combine, materialize
from relax_egraph.lower.codegen.scope import MEMORY_TYPES, VECTOR, Scope
from relax_egraph.lower.emit import half_precision, vector
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, Type
from relax_egraph.lower.emit.partial_store import store_first
from relax_egraph.tir.expr import Buffer


def offset(scope: Scope, buffer: Buffer, indices: Sequence[Index]) -> Index:
    """The row-major offset of the element at `indices`."""
    f = scope.frame.f
    total: Index = 0
    for index, stride in zip(indices, scope.frame.strides[buffer], strict=True):
        total = combine(f, "+", total, combine(f, "*", index, stride, scope.lanes), scope.lanes)
    return total


def address(scope: Scope, buffer: Buffer, indices: Sequence[Index]) -> Value:
    """The address of the element at `indices`, which are the same in all lanes."""
    at = offset(scope, buffer, indices)
    assert not isinstance(at, Ramp | Repeated)
    return _address(scope, buffer, at)


def load(scope: Scope, buffer: Buffer, indices: Sequence[Index]) -> Value:
    """The elements at `indices`: a scalar if all lanes read one element."""
    f, element = scope.frame.f, MEMORY_TYPES[buffer.dtype]
    at = offset(scope, buffer, indices)
    bits = _load(scope, buffer, at, element)
    if is_stored(buffer.dtype):
        return half_precision.from_bits(bits, buffer.dtype)
    return f.compare("!=", bits, 0) if buffer.dtype == "bool" else bits


def _load(scope: Scope, buffer: Buffer, at: Index, element: Type) -> Value:
    f = scope.frame.f
    if isinstance(at, Ramp) and at.step == 1:
        pointer, type = _address(scope, buffer, at.base), element.of(scope.lanes)
        on = None if _has_room(scope, buffer, element) else _readable(scope)
        return f.load(pointer, type) if on is None else vector.masked_load(pointer, type, on)
    if isinstance(at, Ramp) and at.step == -1:
        return vector.reverse(_load(_reversed_lanes(scope), buffer, _ascending(scope, at), element))
    if isinstance(at, Ramp) and at.step in _DENSE:
        return _every(scope, buffer, at, element)
    if isinstance(at, Repeated):
        return _repeated(scope, buffer, at, element)
    if isinstance(at, Ramp) or (isinstance(at, Value) and at.type.lanes > 1):
        pointer, offsets = _spread(scope, buffer, at)
        return vector.gather(pointer, offsets, element, _readable(scope))
    pointer = _address(scope, buffer, at)
    readable = _readable(scope)
    if scope.guard is None or readable is None:
        return f.load(pointer, element)
    # All lanes read one element, which exists if one lane may read it; else read any memory.
    on = vector.reduce("or", scope.guard if scope.guard.type.lanes == 1 else readable)
    return f.load(f.select(on, pointer, f.allocate(element, 1)), element)


def _has_room(scope: Scope, buffer: Buffer, element: Type) -> bool:
    """Whether `buffer` has memory in all lanes of a vector whose first ones are elements."""
    is_known = scope.first is not None and scope.guard is None and buffer in scope.frame.on_stack
    return is_known and scope.lanes * element.bits <= 8 * VECTOR


def _ends(scope: Scope, buffer: Buffer, at: Index, element: Type) -> bool:
    """Whether the first lanes of a vector are the last elements of `buffer`, with room behind."""
    if not _has_room(scope, buffer, element) or not isinstance(at, Ramp):
        return False
    if not isinstance(at.base, int) or not isinstance(scope.first, int):
        return False
    return at.base + scope.first >= scope.frame.on_stack[buffer]


_DENSE = range(2, 5)
"""Steps at which reading all elements between is faster than a gather."""


def _every(scope: Scope, buffer: Buffer, at: Ramp, element: Type) -> Value:
    """Every ``at.step``-th element, selected from whole vectors; the last ends with an element."""
    f, lanes, step = scope.frame.f, scope.lanes, at.step
    assert isinstance(step, int), "a constant step"
    last = (lanes - 1) * (step - 1)
    starts = [min(part * lanes, last) for part in range(step)]
    on, type = _readable(scope), element.of(lanes)

    def read(start: int) -> Value:
        pointer = _address(scope, buffer, _plus(scope, at.base, start))
        if on is None:
            return f.load(pointer, type)
        # Of the elements between those of two lanes, none may exist.
        off = f.const(on.type, 0)
        places = range(start, start + lanes)
        wanted = vector.shuffle(on, off, [lanes if p % step else p // step for p in places])
        return vector.masked_load(pointer, type, wanted)

    result, *others = map(read, starts)
    for part, other in enumerate(others, 1):
        own = [k * step // lanes == part for k in range(lanes)]
        before = [k * step if part == 1 else k for k in range(lanes)]
        result = vector.shuffle(
            result,
            other,
            [
                lanes + k * step - starts[part] if own[k] else before[k] % lanes
                for k in range(lanes)
            ],
        )
    return result


def _repeated(scope: Scope, buffer: Buffer, at: Repeated, element: Type) -> Value:
    """Contiguous elements, each in `at.times` neighbouring lanes."""
    f, times, on = scope.frame.f, at.times, _readable(scope)
    pointer, type = _address(scope, buffer, at.base), element.of(scope.lanes // times)
    if type.lanes == 1 or (on is not None and on.type.lanes == 1):
        pointer, offsets = _spread(scope, buffer, at)
        return vector.gather(pointer, offsets, element, on)
    if on is None:
        loaded = f.load(pointer, type)
    else:
        first = vector.shuffle(on, on, range(0, scope.lanes, times))
        loaded = vector.masked_load(pointer, type, first)
    return vector.shuffle(loaded, loaded, [k // times for k in range(scope.lanes)])


def _ascending(scope: Scope, at: Ramp) -> Ramp:
    """The elements of `at`, whose step is -1, in ascending order."""
    return Ramp(_plus(scope, at.base, 1 - scope.lanes), 1)


def _reversed_lanes(scope: Scope) -> Scope:
    """The scope with its lanes reversed."""
    reversed_masks = (
        m if m is None or m.type.lanes == 1 else vector.reverse(m)
        for m in (scope.mask, scope.guard)
    )
    mask, guard = reversed_masks
    return replace(scope, mask=mask, guard=guard, first=None)


def _plus(scope: Scope, base: int | Value, distance: int) -> int | Value:
    moved = combine(scope.frame.f, "+", base, distance, 1)
    assert not isinstance(moved, Ramp | Repeated)
    return moved


def _readable(scope: Scope) -> Value | None:
    """The mask of the lanes that may read, ``None`` if all may."""
    if scope.guard is None:
        return scope.mask
    on = scope.frame.f.splat(scope.guard, scope.lanes)
    return on if scope.mask is None else scope.mask & on


def store(
    scope: Scope,
    buffer: Buffer,
    indices: Sequence[Index],
    value: Value,
    *,
    past_caches: bool = False,
) -> None:
    """Write `value` at `indices`; if several lanes write one element, the last one wins.

    A value of a storage type is rounded.  Only whole, aligned vectors can be stored `past_caches`,
    by non-temporal stores.
    """
    f = scope.frame.f
    if buffer.dtype == "bool":
        value = f.convert("zext", value, I8)
    if is_stored(buffer.dtype):
        value = half_precision.to_bits(value, buffer.dtype)
    value = f.splat(value, scope.lanes)
    at = offset(scope, buffer, indices)
    if isinstance(at, Ramp) and at.step == -1 and not past_caches:
        value, at, scope = vector.reverse(value), _ascending(scope, at), _reversed_lanes(scope)
    if scope.lanes > 1 and not (isinstance(at, Ramp) and at.step == 1):
        pointer, offsets = _spread(scope, buffer, at)
        vector.scatter(value, pointer, offsets, scope.mask)
        return
    assert not isinstance(at, Repeated), "of several lanes"
    pointer = _address(scope, buffer, at.base if isinstance(at, Ramp) else at)
    if scope.mask is None or _ends(scope, buffer, at, MEMORY_TYPES[buffer.dtype]):
        f.store(value, pointer, past_caches=past_caches)
    elif scope.first is not None and not f.module.target.has_masks:
        store_first(f, value, pointer, scope.first)
    else:
        vector.masked_store(value, pointer, scope.mask)


def _address(scope: Scope, buffer: Buffer, at: int | Value) -> Value:
    pointer = scope.frame.pointers[buffer]
    return scope.frame.f.address(pointer, at, MEMORY_TYPES[buffer.dtype])


def _spread(scope: Scope, buffer: Buffer, at: Index) -> tuple[Value, Value]:
    """A base pointer, and the offsets of the lanes from it, in elements."""
    f = scope.frame.f
    if isinstance(at, Ramp) and isinstance(at.step, int) and abs(at.step) * scope.lanes < 1 << 31:
        numbers = vector.lane_numbers(f, I32.of(scope.lanes))
        return _address(scope, buffer, at.base), numbers * at.step
    if isinstance(at, Ramp):
        numbers = vector.lane_numbers(f, I64.of(scope.lanes))
        return _address(scope, buffer, at.base), numbers * at.step
    offsets = f.splat(materialize(f, at, scope.lanes), scope.lanes)
    return scope.frame.pointers[buffer], offsets
