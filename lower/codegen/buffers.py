"""Room for the buffers that a function makes, and how its arrays are laid out."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.codegen.expr import evaluate
from relax_egraph.lower.codegen.index import Index, Ramp
from relax_egraph.lower.codegen.scope import MEMORY_TYPES, Frame, Scope
from relax_egraph.lower.emit.module_text import I8, I64, PTR
from relax_egraph.lower.emit.value import Value
from relax_egraph.tir.expr import Buffer, from_dim

LARGEST_STACK = 1 << 16
"""How many bytes of buffers a function keeps on the stack; the rest comes from ``malloc``."""

ALIGNMENT = 64


def row_major(frame: Frame, shape: Sequence[Dim]) -> tuple[Index, ...]:
    """How many elements apart neighbours are along each axis of an array."""
    return tuple(_size(frame, dims.product(shape[axis + 1 :])) for axis in range(len(shape)))


@contextmanager
def room_for(frame: Frame, buffers: Sequence[Buffer]) -> Generator[None]:
    """Make `buffers` known in `frame`, with memory that is given back where the block ends."""
    f, left, owned = frame.f, LARGEST_STACK, list[Value]()
    for buffer in buffers:
        frame.strides[buffer] = row_major(frame, buffer.shape)
        element = MEMORY_TYPES[buffer.dtype]
        count = dims.product(buffer.shape)
        if isinstance(count, int) and count * element.bits // 8 <= left:
            left -= count * element.bits // 8
            frame.pointers[buffer] = f.allocate(element, max(1, count))
        else:
            size = _size(frame, count)
            assert not isinstance(size, Ramp)
            room = f.index(size) * (element.bits // 8) + ALIGNMENT
            memory = f.call_value("malloc", PTR, room)
            owned.append(memory)
            number = f.emit(I64, f"ptrtoint {memory} to i64")
            gap = (0 - number) & (ALIGNMENT - 1)
            frame.pointers[buffer] = f.address(memory, gap, I8)
    yield
    for memory in owned:
        f.call("free", memory)


def _size(frame: Frame, dim: Dim) -> Index:
    return evaluate(Scope(frame), from_dim(dim))
