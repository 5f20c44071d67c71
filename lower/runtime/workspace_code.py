"""The machine code of workspaces: a stack of scratch memory for each thread.

``ptr workspace_take(i64 size)`` returns `size` bytes (unsigned), aligned to a cache line, or null
if there is no memory.  ``void workspace_release(ptr)`` releases the block that was taken last and
not yet released; it ignores null.

A workspace is a stack in chunks of the heap.  A block that does not fit the top chunk goes into a
new chunk above it, which is freed when it is empty.  When the lowest chunk is empty, too, it is
replaced by one with room for the peak of all blocks, so that the next call allocates nothing.
Chunks of more than `KEPT` bytes are freed when empty.

A block begins with a line that holds its workspace, so releasing it needs no thread-local lookup.
"""

from enum import IntEnum

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.runtime.driver_objects import is_null, set_word, word

TAKE, RELEASE = "workspace_take", "workspace_release"

END, KEY = "workspace_end", "workspace_key"
"""``void workspace_end(ptr)`` frees the workspace of a thread that ends; the ``i64`` `KEY` is the
key of the workspace for ``pthread_getspecific``."""

KEPT = 1 << 24
"""The maximal bytes that a thread keeps."""

SMALLEST = 1 << 16
"""The minimal bytes of a chunk."""

MOST = 1 << 46
"""The maximal bytes of a block: no system has more, and below it sums do not wrap."""

LINE = 64


class _Workspace(IntEnum):
    """The words of a workspace."""

    TOP = 0  # the start of the free bytes of the top chunk
    LIMIT = 1  # their end
    CHUNK = 2  # the top chunk
    WATCHED = 3  # the block whose release empties the top chunk, or 0
    TOTAL = 4  # the bytes of all chunks
    PEAK = 5  # the maximum of `TOTAL` since the workspace was empty


class _Chunk(IntEnum):
    """The words of a chunk's first line: its size, and the saved state of the chunk below."""

    SIZE = 0
    BELOW = 1
    TOP = 2
    LIMIT = 3


def workspace_module(target: Target) -> str:
    """The text of a module with `TAKE`, `RELEASE` and `END`; `KEY` is external.

    A key has 32 or 64 bits, depending on the system; it is passed as 64.
    """
    module = Module(target)
    _define_push(module)
    _define_pop(module)
    _define_new(module)
    _define_grow(module)
    _define_settle(module)
    _define_take_more(module)
    _define_take(module)
    _define_release(module)
    _define_end(module)
    return f"@{KEY} = external global i64\n{module}"


def heap_module(target: Target) -> str:
    """A module of `TAKE` and `RELEASE` for systems without POSIX threads, by malloc and free."""
    module = Module(target)
    f = Function(module, TAKE, (I64,), result=PTR)
    (size,) = f.args
    fits = f.compare("<", size, MOST, signed=False)
    memory = f.call_value("malloc", PTR, f.select(fits, size + 2 * LINE, f.const(I64, -1)))
    result = f.allocate(PTR, 1)
    f.store(memory, result)
    with f.when(_is_some(memory)):
        number = f.emit(I64, f"ptrtoint {memory} to i64")
        header = f.address(memory, (0 - number) & (LINE - 1), I8)
        set_word(header, 0, memory)
        f.store(f.address(header, LINE, I8), result)
    f.finish(f.load(result, PTR))
    f = Function(module, RELEASE, (PTR,))
    (block,) = f.args
    with f.when(_is_some(block)):
        f.call("free", word(f.address(block, -LINE, I8), 0, PTR))
    f.finish()
    return str(module)


def _define_take(module: Module) -> None:
    f = Function(module, TAKE, (I64,), result=PTR)
    # Saturates: close to 2⁶⁴ the sum must not wrap below `MOST`.
    needed = f.intrinsic("uadd.sat", f.args[0], f.const(I64, 2 * LINE - 1)) & -LINE
    block = f.allocate(PTR, 1)
    f.store(f.const(PTR, 0), block)
    workspace = f.call_value("pthread_getspecific", PTR, _key(f))
    with f.when(_is_some(workspace)):
        _take_if_there(f, workspace, needed, block)
    with f.when(is_null(f.load(block, PTR))):
        f.store(f.call_value("take_more", PTR, workspace, needed), block)
    f.finish(f.load(block, PTR))


def _define_take_more(module: Module) -> None:
    """``take_more(workspace, needed)``: `TAKE` if the top chunk is full or absent."""
    f = Function(module, "take_more", (PTR, I64), result=PTR, internal=True)
    existing, needed = f.args
    own, block = f.allocate(PTR, 1), f.allocate(PTR, 1)
    f.store(existing, own)
    f.store(f.const(PTR, 0), block)
    with f.when(is_null(existing)):
        f.store(f.call_value("new", PTR), own)
    workspace = f.load(own, PTR)
    with f.when(_is_some(workspace)):
        f.call("grow", workspace, needed)
        _take_if_there(f, workspace, needed, block)
    f.finish(f.load(block, PTR))


def _take_if_there(f: Function, workspace: Value, needed: Value, result: Value) -> None:
    """Store in `result` a block of `needed` bytes, if the top chunk has room for it."""
    header = word(workspace, _Workspace.TOP, PTR)
    room = word(workspace, _Workspace.LIMIT) - word(workspace, _Workspace.TOP)
    with f.when(f.compare("<=", needed, room, signed=False)):
        set_word(header, 0, workspace)
        set_word(workspace, _Workspace.TOP, f.address(header, needed, I8))
        f.store(f.address(header, LINE, I8), result)


def _define_release(module: Module) -> None:
    f = Function(module, RELEASE, (PTR,))
    (pointer,) = f.args
    with f.when(_is_some(pointer)):
        block = f.address(pointer, -LINE, I8)
        workspace = word(block, 0, PTR)
        set_word(workspace, _Workspace.TOP, block)
        with f.when(f.compare("==", block, word(workspace, _Workspace.WATCHED, PTR))):
            f.call("settle", workspace)
    f.finish()


def _define_settle(module: Module) -> None:
    """``settle(workspace)``: free or keep the top chunk, which is watched and has become empty."""
    f = Function(module, "settle", (PTR,), internal=True)
    (workspace,) = f.args
    chunk, peak = word(workspace, _Workspace.CHUNK, PTR), word(workspace, _Workspace.PEAK)
    size = word(chunk, _Chunk.SIZE)
    with f.either(is_null(word(chunk, _Chunk.BELOW, PTR))) as (lowest, above):
        with lowest:
            joins = f.compare(">", peak, size) & f.compare("<=", peak, KEPT)
            with f.either(joins | f.compare(">", size, KEPT)) as (leaves, stays):
                with leaves:
                    f.call("pop", workspace)
                    with f.when(joins):
                        f.call("push", workspace, peak)
                with stays:
                    set_word(workspace, _Workspace.WATCHED, f.const(I64, 0))
                    set_word(workspace, _Workspace.PEAK, size)
        with above:
            f.call("pop", workspace)
    f.finish()


def _define_grow(module: Module) -> None:
    """``grow(workspace, needed)``: push a chunk for `needed` bytes, if there is memory."""
    f = Function(module, "grow", (PTR, I64), internal=True)
    workspace, needed = f.args
    with f.when(f.compare("<=", needed, MOST, signed=False)):
        top, chunk = (word(workspace, w, PTR) for w in (_Workspace.TOP, _Workspace.CHUNK))
        # The top chunk, if any, is the lowest: no block of it is in use.
        with f.when(_is_some(chunk) & f.compare("==", top, f.address(chunk, LINE, I8))):
            f.call("pop", workspace)
        size = needed + LINE
        # Sizes often grow from call to call, by a little.
        roomy = f.minimum(size + f.binary(">>", size, 1), KEPT)
        f.call("push", workspace, f.maximum(f.maximum(size, roomy), SMALLEST))
    f.finish()


def _define_push(module: Module) -> None:
    """``push(workspace, size)``: push a chunk, if there is memory."""
    f = Function(module, "push", (PTR, I64), internal=True)
    workspace, size = f.args
    memory = f.allocate(PTR, 1)
    failed = f.call_value("posix_memalign", I32, memory, f.const(I64, LINE), size)
    with f.when(f.compare("==", failed, 0)):
        chunk, below = f.load(memory, PTR), word(workspace, _Workspace.CHUNK, PTR)
        set_word(chunk, _Chunk.SIZE, size)
        set_word(chunk, _Chunk.BELOW, below)
        set_word(chunk, _Chunk.TOP, word(workspace, _Workspace.TOP))
        set_word(chunk, _Chunk.LIMIT, word(workspace, _Workspace.LIMIT))
        start = f.address(chunk, LINE, I8)
        set_word(workspace, _Workspace.CHUNK, chunk)
        set_word(workspace, _Workspace.TOP, start)
        set_word(workspace, _Workspace.LIMIT, f.address(chunk, size, I8))
        total = word(workspace, _Workspace.TOTAL) + size
        set_word(workspace, _Workspace.TOTAL, total)
        peak = f.maximum(word(workspace, _Workspace.PEAK), total)
        set_word(workspace, _Workspace.PEAK, peak)
        is_kept = is_null(below) & f.compare("<=", size, KEPT)
        set_word(workspace, _Workspace.WATCHED, f.select(is_kept, f.const(PTR, 0), start))
    f.finish()


def _define_pop(module: Module) -> None:
    """``pop(workspace)``: free the top chunk; the one below becomes watched."""
    f = Function(module, "pop", (PTR,), internal=True)
    (workspace,) = f.args
    chunk = word(workspace, _Workspace.CHUNK, PTR)
    below = word(chunk, _Chunk.BELOW, PTR)
    total = word(workspace, _Workspace.TOTAL) - word(chunk, _Chunk.SIZE)
    set_word(workspace, _Workspace.CHUNK, below)
    set_word(workspace, _Workspace.TOP, word(chunk, _Chunk.TOP))
    set_word(workspace, _Workspace.LIMIT, word(chunk, _Chunk.LIMIT))
    set_word(workspace, _Workspace.TOTAL, total)
    is_last = is_null(below)
    watched = f.select(is_last, f.const(PTR, 0), f.address(below, LINE, I8))
    set_word(workspace, _Workspace.WATCHED, watched)
    set_word(workspace, _Workspace.PEAK, f.select(is_last, 0, word(workspace, _Workspace.PEAK)))
    f.call("free", chunk)
    f.finish()


def _define_new(module: Module) -> None:
    """``new()``: a workspace for this thread; null if there is no memory."""
    f = Function(module, "new", (), result=PTR, internal=True)
    words = f.const(I64, len(_Workspace))
    result = f.allocate(PTR, 1)
    workspace = f.call_value("calloc", PTR, words, f.const(I64, 8))
    f.store(workspace, result)
    with f.when(_is_some(workspace)):
        failed = f.call_value("pthread_setspecific", I32, _key(f), workspace)
        with f.when(f.compare("!=", failed, 0)):
            f.call("free", workspace)
            f.store(f.const(PTR, 0), result)
    f.finish(f.load(result, PTR))


def _define_end(module: Module) -> None:
    f = Function(module, END, (PTR,))
    (workspace,) = f.args
    with f.forever() as leave:
        leave(is_null(word(workspace, _Workspace.CHUNK, PTR)))
        f.call("pop", workspace)
    f.call("free", workspace)
    f.finish()


def _key(f: Function) -> Value:
    return f.load(Value(f, PTR, f"@{KEY}"), I64)


def _is_some(pointer: Value) -> Value:
    return pointer.function.compare("!=", pointer, pointer.function.const(PTR, 0))
