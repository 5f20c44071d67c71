"""Vectors: masks, masked memory, gathers, shuffles, and reductions over lanes.

A mask is a vector of ``i1``.  A lane that is off neither reads nor writes memory.
"""

from collections.abc import Sequence
from math import nan

from relax_egraph.lower.emit.instructions import FLAGS, Instructions, Operand, Value
from relax_egraph.lower.emit.module_text import I1, I32, PTR, Type


def lane_numbers(f: Instructions, type: Type) -> Value:
    """0, 1, 2, … in the lanes of an integer `type`."""
    numbers = ", ".join(f"{type.element} {i}" for i in range(type.lanes))
    return Value(f, type, f"<{numbers}>" if type.lanes > 1 else "0")


def first_lanes(f: Instructions, count: Operand, lanes: int) -> Value:
    """The mask of the first `count` lanes: none if `count` is negative, at most all."""
    within = f.minimum(f.maximum(f.index(count), 0), lanes)
    limit = f.convert("trunc", within, I32)
    return f.compare("<", lane_numbers(f, I32.of(lanes)), limit)


def masked_load(pointer: Value, type: Type, mask: Value, default: float = 0) -> Value:
    """``type.lanes`` elements from `pointer`; `default` where `mask` is off."""
    f = pointer.function
    name = f"llvm.masked.load.{type.suffix}.p0"
    f.module.declare(name, type, (PTR, mask.type, type))
    rest = f.const(type, default)
    return f.emit(type, f"call {type} @{name}({_aligned(pointer, type)}, {mask}, {rest})")


def masked_store(value: Value, pointer: Value, mask: Value) -> None:
    """Store the lanes of `value` that are on in `mask` at `pointer`."""
    f = value.function
    name = f"llvm.masked.store.{value.type.suffix}.p0"
    f.module.declare(name, None, (value.type, PTR, mask.type))
    f.line(f"call void @{name}({value}, {_aligned(pointer, value.type)}, {mask})")


def gather(pointer: Value, offsets: Value, element: Type, mask: Value | None = None) -> Value:
    """Element ``pointer[offsets[k]]`` in lane ``k``; 0 where `mask` is off."""
    f = pointer.function
    type = element.of(offsets.type.lanes)
    places = _places(pointer, offsets, element)
    name = f"llvm.masked.gather.{type.suffix}.{places.type.suffix}"
    on = mask or all_lanes(f, type.lanes)
    f.module.declare(name, type, (places.type, on.type, type))
    rest = f.const(type, 0)
    return f.emit(type, f"call {type} @{name}({_aligned(places, type)}, {on}, {rest})")


def scatter(value: Value, pointer: Value, offsets: Value, mask: Value | None = None) -> None:
    """Store lane ``k`` of `value` at ``pointer[offsets[k]]``, in the order of lanes."""
    f = value.function
    places = _places(pointer, offsets, value.type)
    name = f"llvm.masked.scatter.{value.type.suffix}.{places.type.suffix}"
    on = mask or all_lanes(f, value.type.lanes)
    f.module.declare(name, None, (value.type, places.type, on.type))
    f.line(f"call void @{name}({value}, {_aligned(places, value.type)}, {on})")


def all_lanes(f: Instructions, lanes: int) -> Value:
    """The mask with every lane on."""
    return f.const(I1.of(lanes), 1)


def bits_of(mask: Value) -> Value:
    """The lanes of `mask`, at most 32, as the bits of an ``i32``."""
    f, lanes = mask.function, mask.type.lanes
    bits = f.emit(Type(f"i{lanes}"), f"bitcast {mask} to i{lanes}")
    return bits if lanes == I32.bits else f.emit(I32, f"zext {bits} to {I32}")


def shuffle(a: Value, b: Value, lanes: Sequence[int]) -> Value:
    """The lanes of `a` followed by `b`, by number: lane ``i`` of `b` has the number ``L + i``."""
    numbers = ", ".join(f"i32 {i}" for i in lanes)
    return a.function.emit(
        a.type.of(len(lanes)), f"shufflevector {a}, {b}, <{len(lanes)} x i32> <{numbers}>"
    )


def reverse(value: Value) -> Value:
    """The lanes of `value` in reverse order."""
    return shuffle(value, value, range(value.type.lanes - 1, -1, -1))


def lane(value: Value, number: Operand) -> Value:
    """One lane of `value`, as a scalar."""
    f = value.function
    return f.emit(value.type.scalar, f"extractelement {value}, {f.index(number)}")


def with_lane(value: Value, number: Operand, scalar: Value) -> Value:
    """`value` with one lane replaced."""
    f = value.function
    return f.emit(value.type, f"insertelement {value}, {scalar}, {f.index(number)}")


def reduce(kind: str, value: Value, *, signed: bool = True) -> Value:
    """The combination of all lanes by ``+ * min max`` in any order; for ``i1`` also ``and or``.

    ``min`` and ``max`` of floats are NaN if any lane is.
    """
    f, type = value.function, value.type
    if type.lanes == 1:
        return value
    if type.is_float and kind in ("min", "max"):
        # LLVM's own reduction checks for NaN at every step.
        most = extreme("<" if kind == "min" else ">", value)
        return f.select(reduce("or", f.compare("!=", value, value)), nan, most)
    if type.is_float:
        operation, start = ("fadd", -0.0) if kind == "+" else ("fmul", 1.0)
        args = (f.const(type.scalar, start), value)
        flags = f"reassoc {FLAGS}"
    else:
        operation = _REDUCTIONS[kind, "signed" if signed else "unsigned"]
        args, flags = (value,), ""
    name = f"llvm.vector.reduce.{operation}.{type.suffix}"
    return f.call_value(name, type.scalar, *args, flags=flags)


def extreme(order: str, value: Value) -> Value:
    """The minimum or maximum of float lanes that are no NaN, by `order`: ``<`` or ``>``."""
    f, rest, half = value.function, value, value.type.lanes // 2
    while half > 1:
        low = shuffle(rest, rest, range(half))
        high = shuffle(rest, rest, range(half, 2 * half))
        rest, half = f.select(f.compare(order, low, high), low, high), half // 2
    first, second = lane(rest, 0), lane(rest, 1)
    return f.select(f.compare(order, first, second), first, second)


_REDUCTIONS = {
    **{("min", "signed"): "smin", ("max", "signed"): "smax"},
    **{("min", "unsigned"): "umin", ("max", "unsigned"): "umax"},
    **{(kind, sort): name for sort in ("signed", "unsigned")
       for kind, name in (("+", "add"), ("*", "mul"), ("and", "and"), ("or", "or"))},
}  # fmt: skip


def _places(pointer: Value, offsets: Value, element: Type) -> Value:
    return pointer.function.emit(
        PTR.of(offsets.type.lanes), f"getelementptr {element.scalar}, {pointer}, {offsets}"
    )


def _aligned(pointer: Value, type: Type) -> str:
    return f"{pointer.type} align {max(1, type.bits // 8)} {pointer.text}"
