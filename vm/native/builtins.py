"""Abstract semantics of the builtins, on kinds and numbers of values.

Other builtins, and operands of unsupported kinds, are left to the interpreter.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.vm.matching import parse_pattern
from relax_egraph.vm.native.dimensions import evaluate
from relax_egraph.vm.native.kinds import MOST_AXES
from relax_egraph.vm.native.numbers import Number, is_multiple, literal
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.trace import Jump, Label
from relax_egraph.vm.native.tracer import Handler, Operands, Tracer
from relax_egraph.vm.native.values import (
    NOTHING,
    Comparison,
    Fields,
    Heap,
    Prim,
    Shape,
    Storage,
    Tensor,
    Truth,
    Value,
)

# --- shapes ---------------------------------------------------------------------------


def _alloc_shape_heap(o: Operands) -> Value:
    _, (size,) = o.split(0)
    return Heap({}, size)


def _store_shape(o: Operands) -> Value:
    (shape, heap), slots = o.split(2)
    extents, t = _extents(shape), o.tracer
    if len(extents) != len(slots):
        raise Refused(f"{len(slots)} slots for {len(extents)} extents")
    for slot, extent in zip(slots, extents, strict=True):
        t.store(t.heap(heap), slot, extent)
    return NOTHING


def _compute_shapes(o: Operands) -> Value:
    (operand,), stores = o.split(1)
    heap = o.tracer.heap(operand)
    for slot, text in zip(stores[::2], stores[1::2], strict=True):
        o.tracer.store(heap, slot, evaluate(o.tracer, heap, text))
    return NOTHING


def _load_shape(o: Operands) -> Value:
    (heap,), slots = o.split(1)
    return Shape(tuple(o.tracer.load(o.tracer.heap(heap), slot) for slot in slots))


def _load_prim(o: Operands) -> Value:
    (heap,), (slot,) = o.split(1)
    return Prim(o.tracer.load(o.tracer.heap(heap), slot))


def _make_prim_value(o: Operands) -> Value:
    (operand,), (text,) = o.split(1)
    return Prim(evaluate(o.tracer, o.tracer.heap(operand), text))


def _to_shape(o: Operands) -> Value:
    return Shape(tuple(map(o.tracer.number, o.values(len(o.operands)))))


def _make_shape(o: Operands) -> Value:
    (operand,), texts = o.split(1)
    heap = o.tracer.heap(operand)
    return Shape(tuple(evaluate(o.tracer, heap, text) for text in texts))


def _shape_of(o: Operands) -> Value:
    (x,) = o.values(1)
    return Shape(o.tracer.shaped(x))


# --- checks ---------------------------------------------------------------------------


def _check_tensor_info(o: Operands) -> Value:
    (x,), (_, _, rank, dtype) = o.split(1)
    if dtype not in DTYPES or type(rank) is not int:
        raise Refused("a check of a tensor of any dtype")
    o.tracer.tensor(x, dtype)
    if rank >= 0:
        o.tracer.ranked(x, rank)
    return NOTHING


def _check_shape_info(o: Operands) -> Value:
    (shape,), (_, _, rank) = o.split(1)
    if rank not in (-1, len(_extents(shape))):
        raise Refused(f"a shape, needs rank {rank}")
    return NOTHING


def _check_tuple_info(o: Operands) -> Value:
    (value,), (_, _, count) = o.split(1)
    if not isinstance(value, Fields) or len(value.values) != count:
        raise Refused(f"a check for a tuple of {count} fields")
    return NOTHING


def _check_upper_bound(o: Operands) -> Value:
    (value,), (bound, _) = o.split(1)
    o.tracer.at_most(o.tracer.number(value), literal(bound))
    return NOTHING


def _check_indices(o: Operands) -> Value:
    (indices, inside, _), _ = o.split(3)
    t = o.tracer
    flag = t.tensor(inside, "bool")
    t.ranked(inside, 0)
    wrong, right = Label(), Label()
    t.trace.add(Jump(wrong, unless=Truth(flag)))
    t.trace.add(Jump(right))
    t.trace.add(wrong)
    t.leave()
    t.trace.add(right)
    return indices


def _check_elements(o: Operands) -> Value:
    (x,), (_, *axes) = o.split(1)
    extents = o.tracer.shaped(x)
    for extent in [extents[a] for a in axes] or extents:
        o.tracer.at_most(1, extent)
    return x


def _match_shape(o: Operands) -> Value:
    (x, heap), (_, _, *patterns) = o.split(2)
    return _matched(o.tracer, x, heap, patterns)


def _match_operand(o: Operands) -> Value:
    (x, heap), (_, *patterns) = o.split(2)
    return _matched(o.tracer, x, heap, patterns)


def _matched(t: Tracer, x: Value, heap: Value, patterns: Sequence[str]) -> Value:
    """Check that the extents of `x` match, or leave: the interpreter reports the mismatch."""
    if isinstance(x, Shape):
        extents = x.extents
        if len(extents) != len(patterns):
            raise Refused(f"a shape of {len(extents)} extents, needs {len(patterns)}")
    else:
        extents = t.ranked(x, len(patterns))
    for extent, pattern in zip(extents, patterns, strict=True):
        kind, number, _ = parse_pattern(pattern)
        if kind == "store":
            t.store(t.heap(heap), number, extent)
        elif kind == "fixed":
            t.equal(extent, literal(number))
    for extent, pattern in zip(extents, patterns, strict=True):
        kind, slot, _ = parse_pattern(pattern)
        if kind == "known":
            t.equal(extent, t.load(t.heap(heap), slot))
    return NOTHING


def _match_prim(o: Operands) -> Value:
    (x, heap), (_, _, pattern) = o.split(2)
    t = o.tracer
    number = t.number(x)
    kind, place, _ = parse_pattern(pattern)
    if kind == "store":
        t.store(t.heap(heap), place, number)
    elif kind == "fixed":
        t.equal(number, literal(place))
    elif kind == "known":
        t.equal(number, t.load(t.heap(heap), place))
    return NOTHING


# --- memory ---------------------------------------------------------------------------


def _alloc_storage(o: Operands) -> Value:
    rest = Operands(o.tracer, o.operands[1:], o.registers)
    return o.tracer.storage(o.tracer.number(*rest.values(1)))


def _size_of(o: Operands) -> Value:
    (shape,), (dtype,) = o.split(1)
    return Prim(_bytes(o.tracer, _extents(shape), dtype))


def _alloc_tensor(o: Operands) -> Value:
    (storage, offset, shape), (dtype,) = o.split(3)
    t = o.tracer
    extents, at = _tensor_extents(t, shape), t.number(offset)
    if not isinstance(storage, Storage):
        raise Refused("a tensor in a storage from outside the program")
    if not is_multiple(at, np.dtype(dtype).itemsize):
        raise Refused("a tensor at an offset that may be unaligned")
    t.at_most(0, at)
    t.at_most(t.trace.numbers.add(_bytes(t, extents, dtype), at), storage.size)
    return Tensor(storage, dtype, extents, at)


def _kill(o: Operands) -> Value:
    o.values(1)
    return NOTHING


# --- data -----------------------------------------------------------------------------


def _make_tuple(o: Operands) -> Value:
    return Fields(tuple(o.values(len(o.operands))))


def _tuple_getitem(o: Operands) -> Value:
    value, index = o.values(2)
    if not isinstance(value, Fields) or not isinstance(index, Prim):
        raise Refused("a field of a tuple from outside the program")
    number = index.number
    if not isinstance(number, int) or not 0 <= number < len(value.values):
        raise Refused(f"a field of a tuple of {len(value.values)}")
    return value.values[number]


def _copy(o: Operands) -> Value:
    (value,) = o.values(1)
    return value


def _reshape(o: Operands) -> Value:
    x, shape = o.values(2)
    t = o.tracer
    extents, tensor, before = _tensor_extents(t, shape), t.tensor(x), t.shaped(x)
    t.equal(t.trace.numbers.product(extents), t.trace.numbers.product(before))
    return Tensor(tensor.owner, tensor.dtype, extents, tensor.offset, view=True)


def _writable(o: Operands) -> Value:
    (x,) = o.values(1)
    o.tracer.write(o.tracer.tensor(x))
    return x


def _prim_less_equal(o: Operands) -> Value:
    a, b = map(o.tracer.number, o.values(2))
    return Comparison(a, b)


def _read_if_cond(o: Operands) -> Value:
    (x,) = o.values(1)
    if isinstance(x, Comparison):
        return Truth(x)
    tensor = o.tracer.tensor(x, "bool")
    o.tracer.ranked(x, 0)
    return Truth(tensor)


def _null_value(o: Operands) -> Value:
    o.values(0)
    return NOTHING


def _fatal(_: Operands) -> Value:
    raise Refused("an error")


# --- dimensions -----------------------------------------------------------------------


def _extents(value: Value) -> tuple[Number, ...]:
    if not isinstance(value, Shape):
        raise Refused("a shape is needed")
    return value.extents


def _tensor_extents(t: Tracer, value: Value) -> tuple[Number, ...]:
    """The extents of a new tensor, with checks that none is negative."""
    extents = _extents(value)
    if len(extents) > MOST_AXES:
        raise Refused(f"a tensor of {len(extents)} axes")
    for extent in extents:
        t.at_most(0, extent)
    return extents


def _bytes(t: Tracer, extents: Sequence[Number], dtype: str) -> Number:
    return t.trace.numbers.product((*extents, np.dtype(dtype).itemsize))


NATIVE_BUILTINS: Mapping[str, Handler] = {
    f"vm.builtin.{name}": handler
    for name, handler in {
        "alloc_shape_heap": _alloc_shape_heap,
        "store_shape": _store_shape,
        "compute_shapes": _compute_shapes,
        "load_shape": _load_shape,
        "load_prim": _load_prim,
        "make_prim_value": _make_prim_value,
        "make_shape": _make_shape,
        "to_shape": _to_shape,
        "shape_of": _shape_of,
        "match_shape": _match_shape,
        "match_operand": _match_operand,
        "match_prim": _match_prim,
        "check_indices": _check_indices,
        "check_elements": _check_elements,
        "check_upper_bound": _check_upper_bound,
        "check_tensor_info": _check_tensor_info,
        "check_shape_info": _check_shape_info,
        "check_tuple_info": _check_tuple_info,
        "alloc_storage": _alloc_storage,
        "size_of": _size_of,
        "alloc_tensor": _alloc_tensor,
        "kill": _kill,
        "make_tuple": _make_tuple,
        "tuple_getitem": _tuple_getitem,
        "copy": _copy,
        "reshape": _reshape,
        "writable": _writable,
        "prim_less_equal": _prim_less_equal,
        "read_if_cond": _read_if_cond,
        "null_value": _null_value,
        "fatal": _fatal,
    }.items()
}
"""The builtins of native programs, by name in bytecode."""
