"""The packed functions ``vm.builtin.*``, which every machine has.

A `Builtin` says how many of its leading operands are values of the run; the rest are
constants, checked and compiled once at load.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.struct_info import shape_text
from relax_egraph.vm import matching
from relax_egraph.vm.arguments import convert
from relax_egraph.vm.closure import closure_of
from relax_egraph.vm.dim_program import Heap, compile_dim, compile_shape
from relax_egraph.vm.matching import describe
from relax_egraph.vm.storage import Bytes, tensor_at

Packed: TypeAlias = Callable[..., Any]
Array: TypeAlias = npt.NDArray[Any]


MAX_HEAP = 1 << 20
"""Slots of one shape heap at most, so that a damaged file cannot ask for a huge one."""


class Allocates(Protocol):
    """The part of a machine that builtins see."""

    def allocate(self, size: int) -> Bytes:
        """Storage of at least `size` bytes, on a 64-byte line."""
        ...


@dataclass(frozen=True, slots=True)
class Builtin:
    """`bind` takes the constant operands after the first `dynamic` and returns what runs."""

    dynamic: int
    bind: Callable[..., Packed]


# --- shapes ---------------------------------------------------------------------------


def alloc_shape_heap(size: int) -> Packed:
    """A heap of `size` dimensions for one call of the function."""
    if not 0 <= size <= MAX_HEAP:
        raise ExecutableError(f"section code: a shape heap of {size} slots, needs 0 to {MAX_HEAP}")
    return partial(list[int], (0,) * size)


def store_shape(*slots: int) -> Packed:
    """Store the extents of a shape into slots of the heap."""

    def store(shape: tuple[int, ...], heap: Heap) -> None:
        for slot, extent in zip(slots, shape, strict=True):
            heap[slot] = extent

    return store


def compute_shape(slot: int, text: str) -> Packed:
    """Store the value of the dimension `text` into a slot of the heap."""
    evaluate = compile_dim(text)

    def compute(heap: Heap) -> None:
        heap[slot] = evaluate(heap)

    return compute


def load_shape(*slots: int) -> Packed:
    """The shape whose extents are in `slots`."""
    return compile_shape(tuple(f"@{slot}" for slot in slots))


def load_prim(slot: int) -> Packed:
    """The dimension in `slot`."""
    return compile_dim(f"@{slot}")


def make_shape(*dims: str) -> Packed:
    """A shape, each extent a number or a slot: ``make_shape(heap, "@0", "784")``."""
    return compile_shape(dims)


def shape_of(x: Array) -> tuple[int, ...]:
    """The shape of a tensor."""
    return x.shape


def prim_less_equal(a: int, b: int) -> Array:
    """Whether ``a ≤ b``, as a boolean scalar tensor."""
    return np.asarray(a <= b)


# --- memory ---------------------------------------------------------------------------


def alloc_storage(vm: Allocates, size: int) -> Bytes:
    """Uninitialised bytes, on a 64-byte line."""
    if size < 0:
        raise RunError(f"a storage of {size} bytes cannot be allocated")
    try:
        return vm.allocate(size)
    except (MemoryError, ValueError):  # the latter past what an address can say
        raise RunError(f"a storage of {size} bytes cannot be allocated") from None


def size_of(dtype: str) -> Packed:
    """The bytes that a tensor of a shape and of `dtype` takes."""
    itemsize = _dtype(dtype).itemsize

    def size(shape: tuple[int, ...]) -> int:
        return math.prod(shape) * itemsize

    return size


def alloc_tensor(dtype: str) -> Packed:
    """The tensor of a shape that lies at an offset of a storage."""
    element = _dtype(dtype)

    def alloc(storage: Bytes, offset: int, shape: tuple[int, ...]) -> Array:
        try:
            return tensor_at(storage, offset, shape, element)
        except ValueError as error:
            raise RunError(str(error)) from None

    return alloc


def kill(_: Any) -> None:
    """Nothing: with its register as `dst`, a value is let go."""


# --- data -----------------------------------------------------------------------------


def make_tuple(*fields: Any) -> tuple[Any, ...]:
    """A tuple."""
    return fields


def tuple_getitem(value: tuple[Any, ...], index: int) -> Any:
    """Field `index` of a tuple."""
    return value[index]


def copy(x: Any) -> Any:
    """The same value, for another register."""
    return x


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """A view of the elements of `x`, in row-major order, under another shape."""
    if math.prod(shape) != x.size:
        raise RunError(
            f"reshape of {describe(x)} to {shape_text(shape)}: "
            f"{x.size} elements do not fill {math.prod(shape)}"
        )
    if any(extent < 0 for extent in shape):  # numpy would fill in a -1
        raise RunError(f"reshape of {describe(x)} to {shape_text(shape)}: an extent is negative")
    return x.reshape(shape)


def writable(x: Array) -> Array:
    """`x` itself, or a copy of it if it is read-only, as constants are."""
    return x if x.flags.writeable else x.copy()


def unique(x: Array) -> Array:
    """The distinct elements of `x`, ascending."""
    return np.unique(x)


def read_if_cond(x: Any) -> bool:
    """The value of a boolean scalar tensor."""
    if not isinstance(x, np.ndarray) or x.ndim or x.dtype != np.bool_:
        raise RunError(f'the condition of an if is {describe(x)}, needs R.Tensor((), "bool")')
    return bool(x)


def make_closure(function: Packed, *captured: Any) -> Packed:
    """`function` with its last arguments given."""
    return closure_of(function, captured)


def invoke_closure(closure: Packed, *args: Any) -> Any:
    """The result of a closure, as kernels take it."""
    if not callable(closure):
        raise RunError(f"cannot call {describe(closure)}")
    return convert("the result of a closure", closure(*args))


def fatal(message: str) -> Packed:
    """Fail with `message`: what was not to happen, where no case of the code fits."""

    def fail() -> None:
        raise RunError(message)

    return fail


def _dtype(name: str) -> np.dtype[Any]:
    if name not in DTYPES:
        raise ExecutableError(f"section code: no dtype {name!r}")
    return np.dtype(name)


BUILTINS: Mapping[str, Packed | Builtin] = {
    f"vm.builtin.{name}": function
    for name, function in {
        "alloc_shape_heap": Builtin(0, alloc_shape_heap),
        "store_shape": Builtin(2, store_shape),
        "compute_shape": Builtin(1, compute_shape),
        "load_shape": Builtin(1, load_shape),
        "load_prim": Builtin(1, load_prim),
        "make_shape": Builtin(1, make_shape),
        "shape_of": shape_of,
        "prim_less_equal": prim_less_equal,
        "match_shape": Builtin(2, matching.match_shape),
        "match_prim": Builtin(2, matching.match_prim),
        "check_tensor_info": Builtin(1, matching.check_tensor_info),
        "check_shape_info": Builtin(1, matching.check_shape_info),
        "check_tuple_info": Builtin(1, matching.check_tuple_info),
        "alloc_storage": alloc_storage,
        "size_of": Builtin(1, size_of),
        "alloc_tensor": Builtin(3, alloc_tensor),
        "kill": kill,
        "make_tuple": make_tuple,
        "tuple_getitem": tuple_getitem,
        "copy": copy,
        "reshape": reshape,
        "writable": writable,
        "unique": unique,
        "read_if_cond": read_if_cond,
        "make_closure": make_closure,
        "invoke_closure": invoke_closure,
        "fatal": Builtin(0, fatal),
    }.items()
}
"""The builtins, by the name that bytecode calls."""
