"""Room for the buffers that a function makes, and how its arrays are laid out.

What is small and of a known size lies on the stack, the rest in the workspace of the thread.  Sizes
follow from the shapes of arguments alone, but shapes of arrays without elements may be anything: a
kernel that finds no room for a buffer runs nothing, and returns that, so that who called it raises
a ``MemoryError``.  A task that finds none runs none of its turns, and its kernel goes on to its
end: what it computes is of no use, but it stays in its arrays whatever it reads.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.codegen.expr import evaluate
from relax_egraph.lower.codegen.index import Index, Ramp
from relax_egraph.lower.codegen.scope import MEMORY_TYPES, Frame, Scope
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I1, I64, PTR, Type
from relax_egraph.lower.runtime.workspace_code import RELEASE, TAKE
from relax_egraph.tir.expr import Buffer, from_dim

LARGEST_STACK = 1 << 16
"""How many bytes of buffers a function keeps on the stack."""


def row_major(frame: Frame, shape: Sequence[Dim]) -> tuple[Index, ...]:
    """How many elements apart neighbours are along each axis of an array."""
    return tuple(_size(frame, dims.product(shape[axis + 1 :])) for axis in range(len(shape)))


def all_on_stack(buffers: Sequence[Buffer]) -> bool:
    """Whether there is always room for `buffers`."""
    return len(_on_stack(buffers)) == len(buffers)


@contextmanager
def room_for(frame: Frame, buffers: Sequence[Buffer]) -> Generator[None]:
    """Make `buffers` known in `frame`, with memory that is given back where the block ends.

    The block is not run where there is none; the status is then 1.
    """
    f, on_stack = frame.f, _on_stack(buffers)
    taken: list[Value] = []
    for buffer in buffers:
        frame.strides[buffer] = row_major(frame, buffer.shape)
        if buffer in on_stack:
            element = MEMORY_TYPES[buffer.dtype]
            frame.pointers[buffer] = f.allocate(element, max(1, on_stack[buffer]))
        else:
            memory = f.call_value(TAKE, PTR, _bytes(frame, buffer))
            frame.pointers[buffer] = memory
            taken.append(memory)
    if not taken:
        yield
        return
    there = f.const(I1, True)
    for memory in taken:
        there = there & f.compare("!=", memory, f.const(PTR, 0))
    with f.either(there) as (all_there, missing):
        with all_there:
            yield
        with missing:
            assert frame.status is not None
            f.line(f"store atomic i32 1, {frame.status} monotonic, align 4")  # of any task
    for memory in reversed(taken):
        f.call(RELEASE, memory)


def _on_stack(buffers: Sequence[Buffer]) -> dict[Buffer, int]:
    """Those of `buffers` that lie on the stack, and how many elements they have."""
    found: dict[Buffer, int] = {}
    left = LARGEST_STACK
    for buffer in buffers:
        count = dims.product(buffer.shape)
        if isinstance(count, int):
            size = count * MEMORY_TYPES[buffer.dtype].bits // 8
            if size <= left:
                found[buffer] = count
                left -= size
    return found


def _bytes(frame: Frame, buffer: Buffer) -> Value:
    """The size: 0 if an extent is not positive, 2⁶⁴ - 1 if it is not less than that."""
    f = frame.f
    total = f.const(I64, MEMORY_TYPES[buffer.dtype].bits // 8)
    for dim in buffer.shape:
        size = _size(frame, dim)
        assert not isinstance(size, Ramp)
        total = _saturated(f, total, f.maximum(f.index(size), 0))
    return total


def _saturated(f: Function, a: Value, b: Value) -> Value:
    """The product of two numbers that are not negative."""
    both = f.call_value("llvm.umul.with.overflow.i64", Type("{i64, i1}"), a, b)
    product, wraps = f.emit(I64, f"extractvalue {both}, 0"), f.emit(I1, f"extractvalue {both}, 1")
    return f.select(wraps, -1, product)


def _size(frame: Frame, dim: Dim) -> Index:
    return evaluate(Scope(frame), from_dim(dim))
