"""Run-time checks of what struct info claims, and binding of dimensions to heap slots.

Each function here is called once at load, with the constant operands of an instruction,
and returns what runs.  `where` names function and variable, `expected` is the struct info as
script writes it; both are only for the message.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.ir.struct_info import shape_text, tensor
from relax_egraph.vm.dim_program import Heap, slot_of


def describe(value: Any) -> str:
    """`value` as script would write its type: ``R.Tensor((3, 4), "float32")``."""
    match value:
        case np.ndarray():
            return str(tensor(value.shape, value.dtype.name))
        case tuple() if all(type(v) is int for v in value):
            return f"R.Shape({shape_text(value)})"
        case tuple():
            return f"R.Tuple({', '.join(map(describe, value))})"
        case int() | float() | None:
            return repr(value)
        case _:
            return f"an object of type {type(value).__name__}"


def check_tensor_info(where: str, expected: str, ndim: int, dtype: str) -> Callable[[Any], None]:
    """Check for a tensor of rank `ndim` (any, if negative) and `dtype` (any, if empty)."""
    wanted = np.dtype(dtype) if dtype else None

    def check(value: Any) -> None:
        if (
            type(value) is not np.ndarray
            or (wanted is not None and value.dtype != wanted)
            or (ndim >= 0 and value.ndim != ndim)
        ):
            raise _mismatch(where, expected, value)

    return check


def check_shape_info(where: str, expected: str, ndim: int) -> Callable[[Any], None]:
    """Check for a shape of rank `ndim` (any, if negative)."""

    def check(value: Any) -> None:
        if (
            type(value) is not tuple
            or (ndim >= 0 and len(value) != ndim)
            or not all(type(v) is int for v in value)
        ):
            raise _mismatch(where, expected, value)

    return check


def check_tuple_info(where: str, expected: str, count: int) -> Callable[[Any], None]:
    """Check for a tuple of `count` fields."""

    def check(value: Any) -> None:
        if type(value) is not tuple or len(value) != count:
            raise _mismatch(where, expected, value)

    return check


def match_shape(where: str, expected: str, *patterns: str) -> Callable[[Any, Heap | None], None]:
    """Match the extents of a tensor or shape against one pattern each.

    ``_`` takes anything; ``784`` takes 784; ``n -> @0`` stores into slot 0 of the heap;
    ``n * 4 == @2`` takes what is in slot 2.  All are stored before any is compared.
    """
    stores: list[tuple[int, int]] = []
    fixed: list[tuple[int, int]] = []
    known: list[tuple[int, int, str]] = []
    for axis, pattern in enumerate(patterns):
        match parse_pattern(pattern):
            case ("store", slot, _):
                stores.append((axis, slot))
            case ("known", slot, text):
                known.append((axis, slot, text))
            case ("fixed", extent, _):
                fixed.append((axis, extent))
            case _:
                pass
    rank = len(patterns)

    def match_(value: Any, heap: Any) -> None:
        shape = value if type(value) is tuple else value.shape
        if len(shape) != rank:
            raise _mismatch(where, expected, value)
        for axis, extent in fixed:
            if shape[axis] != extent:
                raise _extent(where, expected, value, axis, shape[axis], str(extent))
        for axis, slot in stores:
            heap[slot] = shape[axis]
        for axis, slot, text in known:
            if shape[axis] != heap[slot]:
                needs = f"{text} = {heap[slot]}"
                raise _extent(where, expected, value, axis, shape[axis], needs)

    return match_


def match_prim(where: str, expected: str, pattern: str) -> Callable[[Any, Any], None]:
    """Match an integer against a pattern of `match_shape`."""
    kind, number, text = parse_pattern(pattern)

    def match_(value: Any, heap: Any) -> None:
        try:
            found = operator.index(value)
        except TypeError:
            raise _mismatch(where, expected, value) from None
        if kind == "store":
            heap[number] = found
        elif kind == "known" and found != heap[number]:
            raise RunError(
                f"{where}: expected {expected}, got {found}, needs {text} = {heap[number]}"
            )
        elif kind == "fixed" and found != number:
            raise RunError(f"{where}: expected {expected}, got {found}")

    return match_


def parse_pattern(text: str) -> tuple[str, int, str]:
    """Kind (``store known any fixed``), slot or extent, and what the message says of it."""
    for arrow, kind in ((" -> ", "store"), (" == ", "known")):
        name, found, place = text.rpartition(arrow)
        slot = slot_of(place)
        if found and slot is not None:
            return kind, slot, name
    if text == "_":
        return "any", 0, text
    if text.isascii() and text.isdecimal():
        return "fixed", int(text), text
    raise ExecutableError(f"section code: `{text[:60]}` is no pattern of a dimension")


def _mismatch(where: str, expected: str, value: Any) -> RunError:
    return RunError(f"{where}: expected {expected}, got {describe(value)}")


def _extent(where: str, expected: str, value: Any, axis: int, found: int, needs: str) -> RunError:
    return RunError(
        f"{where}: expected {expected}, got {describe(value)}: "
        f"dimension {axis} is {found}, needs {needs}"
    )
