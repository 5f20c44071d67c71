"""Allocation of the buffers of a function, and the strides of its arrays.

Small buffers of a constant size are on the stack, all others in the workspace of the thread.  The
shapes of arrays without elements may be arbitrarily large, so an allocation may fail: the kernel
then runs nothing and returns 1, and its caller raises a ``MemoryError``.  A task that cannot
allocate skips its iterations, and its kernel continues to the end: the results are garbage, but all
accesses stay within the arrays.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.codegen.expr import evaluate
from relax_egraph.lower.codegen.index import Index, Ramp, Repeated
from relax_egraph.lower.codegen.scope import MEMORY_TYPES, VECTOR, Frame, Scope
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I1, I64, PTR, Type
from relax_egraph.lower.runtime.workspace_code import RELEASE, TAKE
from relax_egraph.tir.expr import Buffer, from_dim

LARGEST_STACK = 1 << 16
"""The maximal bytes of the buffers of a function on the stack, without the room behind each."""


def row_major(frame: Frame, shape: Sequence[Dim]) -> tuple[Index, ...]:
    """The row-major strides of an array, in elements."""
    return tuple(_size(frame, dims.product(shape[axis + 1 :])) for axis in range(len(shape)))


def all_on_stack(buffers: Sequence[Buffer]) -> bool:
    """Whether the allocation of `buffers` cannot fail."""
    return len(_on_stack(buffers)) == len(buffers)


@contextmanager
def room_for(frame: Frame, buffers: Sequence[Buffer]) -> Generator[None]:
    """Allocate `buffers`, declare them in `frame`, and release them at the end of the block.

    If an allocation fails, the block is skipped and the status is 1.
    """
    f, on_stack = frame.f, _on_stack(buffers)
    allocated: list[Value] = []
    for buffer in buffers:
        frame.strides[buffer] = row_major(frame, buffer.shape)
        if buffer in on_stack:
            element = MEMORY_TYPES[buffer.dtype]
            count = on_stack[buffer] + VECTOR * 8 // element.bits
            frame.pointers[buffer] = f.allocate(element, count)
            frame.on_stack[buffer] = on_stack[buffer]
        else:
            memory = f.call_value(TAKE, PTR, _bytes(frame, buffer))
            frame.pointers[buffer] = memory
            allocated.append(memory)
    if not allocated:
        yield
        return
    succeeded = f.const(I1, True)
    for memory in allocated:
        succeeded = succeeded & f.compare("!=", memory, f.const(PTR, 0))
    with f.either(succeeded) as (success, failure):
        with success:
            yield
        with failure:
            assert frame.status is not None
            f.line(f"store atomic i32 1, {frame.status} monotonic, align 4")  # of any task
    for memory in reversed(allocated):
        f.call(RELEASE, memory)


def _on_stack(buffers: Sequence[Buffer]) -> dict[Buffer, int]:
    """The buffers of `buffers` that are on the stack, with their numbers of elements."""
    counts: dict[Buffer, int] = {}
    free = LARGEST_STACK
    for buffer in buffers:
        count = dims.product(buffer.shape)
        if isinstance(count, int):
            size = count * MEMORY_TYPES[buffer.dtype].bits // 8
            if size <= free:
                counts[buffer] = count
                free -= size
    return counts


def _bytes(frame: Frame, buffer: Buffer) -> Value:
    """The size in bytes: 0 if an extent is not positive, at most 2⁶⁴ - 1."""
    f = frame.f
    total = f.const(I64, MEMORY_TYPES[buffer.dtype].bits // 8)
    for dim in buffer.shape:
        size = _size(frame, dim)
        assert not isinstance(size, Ramp | Repeated)
        total = _saturated(f, total, f.maximum(f.index(size), 0))
    return total


def _saturated(f: Function, a: Value, b: Value) -> Value:
    """The saturating product of two nonnegative numbers."""
    both = f.call_value("llvm.umul.with.overflow.i64", Type("{i64, i1}"), a, b)
    product, wraps = f.emit(I64, f"extractvalue {both}, 0"), f.emit(I1, f"extractvalue {both}, 1")
    return f.select(wraps, -1, product)


def _size(frame: Frame, dim: Dim) -> Index:
    return evaluate(Scope(frame), from_dim(dim))
