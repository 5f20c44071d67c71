"""Run-time checks of struct info, and binding of dimensions to heap slots.

Each function here is called once at load, with the constant operands of an instruction, and returns
the check to run.  `where` names function and variable, `expected` is the struct info in script
syntax; both are only for the message.
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.vm.dim_program import slot_of, within_limit

MOST_FIELDS = 16
"""The most fields of a tuple that is described field by field."""


def shape_text(shape: Sequence[int]) -> str:
    """A shape in script syntax: ``(3, 4)``, ``(3,)``, ``()``."""
    inside = ", ".join(map(str, shape))
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def describe(value: Any) -> str:
    """The type of `value` in script syntax: ``R.Tensor((3, 4), "float32")``."""
    match value:
        case np.ndarray() if value.dtype.name in DTYPES:
            return f'R.Tensor({shape_text(value.shape)}, "{value.dtype.name}")'
        case np.ndarray():
            return f"an array of dtype {value.dtype} and shape {value.shape}"
        case tuple() if (count := len(cast(tuple[Any, ...], value))) > MOST_FIELDS:
            return f"R.Shape(ndim={count})" if is_shape(value) else f"a tuple of {count} fields"
        case tuple() if is_shape(value):
            return f"R.Shape({shape_text(value)})"
        case tuple():
            return f"R.Tuple({', '.join(map(describe, value))})"
        case int() | float() | None:
            return repr(value)
        case list():
            return "a shape heap"
        case _:
            return f"an object of type {type(value).__name__}"


def is_shape(value: Any) -> bool:
    """Whether `value` is a tuple of integers."""
    return type(value) is tuple and all(type(v) is int for v in cast(tuple[Any, ...], value))


def check_tensor_info(where: str, expected: str, ndim: int, dtype: str) -> Callable[[Any], None]:
    """A check for a tensor of rank `ndim` (any, if negative) and `dtype` (any, if empty)."""
    if dtype and dtype not in DTYPES:
        raise ExecutableError(f"{where}: no dtype {dtype!r:.40}")
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
    """A check for a shape of rank `ndim` (any, if negative)."""

    def check(value: Any) -> None:
        if not is_shape(value) or (ndim >= 0 and len(value) != ndim):
            raise _mismatch(where, expected, value)

    return check


def check_tuple_info(where: str, expected: str, count: int) -> Callable[[Any], None]:
    """A check for a tuple of `count` fields."""

    def check(value: Any) -> None:
        if type(value) is not tuple or len(value) != count:
            raise _mismatch(where, expected, value)

    return check


def check_prim_info(where: str, expected: str, dtype: str) -> Callable[[Any], None]:
    """A check for a Python number of `dtype`."""
    kind = _PRIMS.get(dtype.rstrip("0123456789"))
    if kind is None or dtype not in DTYPES:
        raise ExecutableError(f"no dtype {dtype!r} of numbers of the host")

    def check(value: Any) -> None:
        if type(value) is not kind:
            raise _mismatch(where, expected, value)

    return check


_PRIMS = {"bool": bool, "int": int, "uint": int, "float": float, "bfloat": float}


def check_string_info(where: str, expected: str) -> Callable[[Any], None]:
    """A check for a string."""

    def check(value: Any) -> None:
        if type(value) is not str:
            raise _mismatch(where, expected, value)

    return check


def check_func_info(where: str, expected: str) -> Callable[[Any], None]:
    """A check for a function."""

    def check(value: Any) -> None:
        if not callable(value):
            raise _mismatch(where, expected, value)

    return check


def check_upper_bound(bound: int, where: str) -> Callable[[Any], None]:
    """A check that an integer is at most `bound`."""

    def check(value: Any) -> None:
        if type(value) is not int:
            raise RunError(f"{where}: expected an integer <= {bound}, got {describe(value)}")
        if value > bound:
            raise RunError(f"{where}: expected <= {bound}, got {value}")

    return check


def match_shape(where: str, expected: str, *patterns: str) -> Callable[[Any, Any], None]:
    """A match of the extents of a tensor or shape against one pattern each.

    ``_`` matches anything; ``784`` matches 784; ``n -> @0`` stores into slot 0 of the heap;
    ``n * 4 == @2`` matches the value of slot 2.  All stores precede all comparisons.
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
    slots = 1 + max((slot for _, slot, *_ in (*stores, *known)), default=-1)

    def match_(value: Any, heap: Any) -> None:
        shape = value.shape if type(value) is np.ndarray else value
        if shape is value and not is_shape(value):
            raise _mismatch(where, expected, value)
        if slots and (type(heap) is not list or len(heap) < slots):
            raise _no_heap(where, heap, slots)
        if len(shape) != rank:
            raise _mismatch(where, expected, value)
        for axis, extent in fixed:
            if shape[axis] != extent:
                raise _extent(where, expected, value, axis, shape[axis], str(extent))
        for axis, slot in stores:
            heap[slot] = within_limit(where, shape[axis])
        for axis, slot, text in known:
            if shape[axis] != heap[slot]:
                needs = f"{text} = {heap[slot]}"
                raise _extent(where, expected, value, axis, shape[axis], needs)

    return match_


def match_operand(refusal: str, *patterns: str) -> Callable[[Any, Any], None]:
    """A match of the extents of an operand against patterns of `match_shape`, with its own message.

    In `refusal`, the message of a failure, ``{@0}`` stands for the number in slot 0 of the heap.
    """
    match_ = match_shape("", "", *patterns)
    slots = 1 + max(map(int, _SLOT.findall(refusal)), default=-1)

    def checked(value: Any, heap: Any) -> None:
        try:
            match_(value, heap)
        except RunError:
            if slots and (type(heap) is not list or len(heap) < slots):
                raise _no_heap("the check of an operand", heap, slots) from None
            raise RunError(_SLOT.sub(lambda slot: str(heap[int(slot[1])]), refusal)) from None

    return checked


_SLOT = re.compile(r"\{@(\d{1,9})\}")


def match_prim(where: str, expected: str, pattern: str) -> Callable[[Any, Any], None]:
    """A match of an integer against a pattern of `match_shape`."""
    kind, number, text = parse_pattern(pattern)
    slots = number + 1 if kind in ("store", "known") else 0

    def match_(value: Any, heap: Any) -> None:
        try:
            actual = operator.index(value)
        except TypeError:
            raise _mismatch(where, expected, value) from None
        if slots and (type(heap) is not list or len(heap) < slots):
            raise _no_heap(where, heap, slots)
        if kind == "store":
            heap[number] = within_limit(where, actual)
        elif kind == "known" and actual != heap[number]:
            raise RunError(
                f"{where}: expected {expected}, got {actual}, needs {text} = {heap[number]}"
            )
        elif kind == "fixed" and actual != number:
            raise RunError(f"{where}: expected {expected}, got {actual}")

    return match_


def parse_pattern(text: str) -> tuple[str, int, str]:
    """The kind of a pattern (``store known any fixed``), its slot or extent, and its text."""
    for arrow, kind in ((" -> ", "store"), (" == ", "known")):
        name, actual, place = text.rpartition(arrow)
        slot = slot_of(place)
        if actual and slot is not None:
            return kind, slot, name
    if text == "_":
        return "any", 0, text
    if text.isascii() and text.isdecimal():
        return "fixed", int(text), text
    raise ExecutableError(f"section code: `{text[:60]}` is no pattern of a dimension")


def _no_heap(where: str, value: Any, slots: int) -> RunError:
    got = f"one of {len(value)}" if type(value) is list else describe(value)
    return RunError(f"{where}: expected a shape heap of {slots} slots or more, got {got}")


def _mismatch(where: str, expected: str, value: Any) -> RunError:
    return RunError(f"{where}: expected {expected}, got {describe(value)}")


def _extent(where: str, expected: str, value: Any, axis: int, actual: int, needs: str) -> RunError:
    return RunError(
        f"{where}: expected {expected}, got {describe(value)}: "
        f"dimension {axis} is {actual}, needs {needs}"
    )
