"""The shape heap, and shapes and dimensions as values."""

import operator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.vm.builtins.builtin import Builtin, Packed, bound, of_values, wrong
from relax_egraph.vm.dim_program import (
    compile_dim,
    compile_shape,
    compile_stores,
    within_limit,
)
from relax_egraph.vm.matching import describe, is_shape

Array = npt.NDArray[Any]

MAX_HEAP = 1 << 20
"""The most slots of a shape heap: a damaged file cannot request a huge one."""


def alloc_shape_heap(size: int) -> Packed:
    """A heap of `size` dimensions for one call of the function."""
    if not 0 <= size <= MAX_HEAP:
        raise ExecutableError(f"a shape heap of {size} slots, needs 0 to {MAX_HEAP}")
    return partial(list[int], (0,) * size)


def store_shape(*slots: int) -> Packed:
    """Store the extents of a shape into slots of the heap."""
    places = list(map(_slot, slots))

    def store(shape: Any, heap: Any) -> None:
        if not is_shape(shape) or len(shape) != len(places):
            raise wrong("store_shape", "shape", shape, f"a shape of {len(places)} extents")
        for slot, extent in zip(places, shape, strict=True):
            if type(heap) is not list or slot >= len(heap):
                raise wrong("store_shape", "heap", heap, f"a shape heap with a slot {slot}")
            heap[slot] = within_limit("vm.builtin.store_shape: an extent", extent)

    return store


def compute_shapes(*slots_and_dims: Any) -> Packed:
    """Store dimensions into slots of the heap: ``compute_shapes(heap, 2, "@0 * 4", 3, "@2 + 1")``.

    They are compiled to one function, in which common subexpressions are computed once.
    """
    if len(slots_and_dims) % 2:
        raise ExecutableError("takes a slot before each dimension")
    for text in slots_and_dims[1::2]:
        if type(text) is not str:
            raise ExecutableError(f"the dimension {text!r} is no string")
    run = compile_stores(list(map(_slot, slots_and_dims[::2])), slots_and_dims[1::2])

    def compute(heap: Any) -> None:
        if type(heap) is not list:
            raise wrong("compute_shapes", "heap", heap, "a shape heap")
        run(heap)

    return compute


def load_shape(*slots: int) -> Packed:
    """The shape whose extents are in slots of the heap."""
    return _of_heap("load_shape", compile_shape(tuple(f"@{_slot(slot)}" for slot in slots)))


def make_shape(*dims: str) -> Packed:
    """A shape, each extent a number or a slot: ``make_shape(heap, "@0", "784")``."""
    return _of_heap("make_shape", compile_shape(dims))


def load_prim(slot: int) -> Packed:
    """The dimension in a slot of the heap."""
    return _of_heap("load_prim", compile_dim(f"@{_slot(slot)}"))


def make_prim_value(dim: str) -> Packed:
    """A dimension as a Python number: ``make_prim_value(heap, "@0 * 4")``."""
    return _of_heap("make_prim_value", compile_dim(dim))


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of a tensor."""
    if not isinstance(x, np.ndarray):
        raise wrong("shape_of", "x", x, "a tensor")
    return x.shape


def to_shape(*extents: Any) -> tuple[int, ...]:
    """The shape of these extents, which are Python numbers."""
    return tuple(_integer("to_shape", "extents", e) for e in extents)


def tensor_to_shape(x: Any) -> tuple[int, ...]:
    """The shape whose extents are the elements of an integer tensor of rank 1, none negative."""
    if not isinstance(x, np.ndarray) or x.ndim != 1 or x.dtype.kind not in "iu":
        raise wrong("tensor_to_shape", "x", x, "a tensor of integers of rank 1")
    extents = tuple[int, ...](x.tolist())
    if min(extents, default=0) < 0:
        raise RunError(
            f"R.tensor_to_shape of {describe(x)}: the elements are no extents of a shape: "
            f"{x.tolist()}"
        )
    return extents


def prim_less_equal(a: Any, b: Any) -> Array:
    """Whether ``a ≤ b``, as a boolean scalar tensor: a condition."""
    return np.asarray(_integer("prim_less_equal", "a", a) <= _integer("prim_less_equal", "b", b))


def prim_equal(a: Any, b: Any) -> Array:
    """Whether ``a = b``, as a boolean scalar tensor: a condition."""
    return np.asarray(_integer("prim_equal", "a", a) == _integer("prim_equal", "b", b))


def _of_heap(name: str, read: Packed) -> Packed:
    """`read`, with a check that the heap has the slots that it reads."""

    def run(heap: Any) -> Any:
        if type(heap) is not list:
            raise wrong(name, "heap", heap, "a shape heap")
        return read(heap)

    return run


def _slot(slot: int) -> int:
    if type(slot) is not int or not 0 <= slot < MAX_HEAP:
        raise ExecutableError(f"slot {slot!r} of a heap of at most {MAX_HEAP}")
    return slot


def _integer(name: str, operand: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise wrong(name, operand, value, "an integer") from None


SHAPES: tuple[Builtin, ...] = (
    bound(alloc_shape_heap),
    of_values(shape_of),
    bound(store_shape, "shape", "heap"),
    bound(compute_shapes, "heap"),
    bound(load_shape, "heap"),
    bound(make_shape, "heap"),
    bound(load_prim, "heap"),
    bound(make_prim_value, "heap"),
    of_values(to_shape),
    of_values(tensor_to_shape),
    of_values(prim_less_equal),
    of_values(prim_equal),
)
