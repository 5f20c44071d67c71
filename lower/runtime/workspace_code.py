"""The machine code of workspaces: scratch memory that each thread keeps from kernel to kernel.

``ptr workspace_take(i64 size)`` gives so many bytes, unsigned, on a line of the cache; null where
there are not so many.  ``void workspace_release(ptr)`` takes back what was taken last and is still
out; null is nothing.

A workspace is a stack in chunks of the heap.  What does not fit the chunk at the top goes into a
new one above it, which is given back when it is empty.  When the lowest one is empty, too, it is
joined: replaced by one in which all that was out at once has room, so that the next call asks the
heap for nothing.  Chunks of more than `KEPT` bytes are not kept.

A block is a line that says whose it is, then its bytes: who releases it need not ask the system.
"""

from enum import IntEnum

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I8, I32, I64, PTR, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.runtime.driver_objects import is_null, set_word, word

TAKE, RELEASE = "workspace_take", "workspace_release"

END, KEY = "workspace_end", "workspace_key"
"""``void workspace_end(ptr)`` frees the workspace of a thread that ends; the ``i64`` at the other
is the key of ``pthread_getspecific`` that finds it."""

KEPT = 1 << 24
"""How many bytes a thread keeps at most."""

SMALLEST = 1 << 16
"""The bytes of a chunk at least."""

MOST = 1 << 46
"""Who asks for more bytes than these gets none: no system has them, and sums do not wrap."""

LINE = 64


class _Workspace(IntEnum):
    """The words of a workspace."""

    TOP = 0  # the chunk at the top: what is free of it begins and ends here
    LIMIT = 1
    CHUNK = 2
    WATCHED = 3  # when this block is released, there is more to do; or 0
    TOTAL = 4  # the bytes of all chunks
    PEAK = 5  # the most that `TOTAL` has been since all was empty


class _Chunk(IntEnum):
    """The words of a chunk's first line: its size, and the chunk below as it was left."""

    SIZE = 0
    BELOW = 1
    TOP = 2
    LIMIT = 3


def workspace_module(target: Target) -> str:
    """The text of a module with `TAKE`, `RELEASE` and `END`; `KEY` is defined elsewhere.

    A key may be of 32 or of 64 bits: it is passed as the latter.
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
    """The same for systems without threads of POSIX: each block is from the heap, and goes back."""
    module = Module(target)
    f = Function(module, TAKE, (I64,), result=PTR)
    (size,) = f.args
    fits = f.compare("<", size, MOST, signed=False)
    memory = f.call_value("malloc", PTR, f.select(fits, size + 2 * LINE, f.const(I64, -1)))
    taken = f.allocate(PTR, 1)
    f.store(memory, taken)
    with f.when(_is_some(memory)):
        number = f.emit(I64, f"ptrtoint {memory} to i64")
        block = f.address(memory, (0 - number) & (LINE - 1), I8)
        set_word(block, 0, memory)
        f.store(f.address(block, LINE, I8), taken)
    f.finish(f.load(taken, PTR))
    f = Function(module, RELEASE, (PTR,))
    (taken,) = f.args
    with f.when(_is_some(taken)):
        f.call("free", word(f.address(taken, -LINE, I8), 0, PTR))
    f.finish()
    return str(module)


def _define_take(module: Module) -> None:
    f = Function(module, TAKE, (I64,), result=PTR)
    # Near 2⁶⁴ it must not wrap: that is past `MOST`.
    needed = f.intrinsic("uadd.sat", f.args[0], f.const(I64, 2 * LINE - 1)) & -LINE
    taken = f.allocate(PTR, 1)
    f.store(f.const(PTR, 0), taken)
    workspace = f.call_value("pthread_getspecific", PTR, _key(f))
    with f.when(_is_some(workspace)):
        _take_if_there(f, workspace, needed, taken)
    with f.when(is_null(f.load(taken, PTR))):
        f.store(f.call_value("take_more", PTR, workspace, needed), taken)
    f.finish(f.load(taken, PTR))


def _define_take_more(module: Module) -> None:
    """``take_more(workspace, needed)``: what `TAKE` does where that is not there."""
    f = Function(module, "take_more", (PTR, I64), result=PTR, internal=True)
    known, needed = f.args
    own, taken = f.allocate(PTR, 1), f.allocate(PTR, 1)
    f.store(known, own)
    f.store(f.const(PTR, 0), taken)
    with f.when(is_null(known)):
        f.store(f.call_value("new", PTR), own)
    workspace = f.load(own, PTR)
    with f.when(_is_some(workspace)):
        f.call("grow", workspace, needed)
        _take_if_there(f, workspace, needed, taken)
    f.finish(f.load(taken, PTR))


def _take_if_there(f: Function, workspace: Value, needed: Value, taken: Value) -> None:
    """Store in `taken` what of the chunk at the top is `needed`, if it has so much."""
    block = word(workspace, _Workspace.TOP, PTR)
    room = word(workspace, _Workspace.LIMIT) - word(workspace, _Workspace.TOP)
    with f.when(f.compare("<=", needed, room, signed=False)):
        set_word(block, 0, workspace)
        set_word(workspace, _Workspace.TOP, f.address(block, needed, I8))
        f.store(f.address(block, LINE, I8), taken)


def _define_release(module: Module) -> None:
    f = Function(module, RELEASE, (PTR,))
    (taken,) = f.args
    with f.when(_is_some(taken)):
        block = f.address(taken, -LINE, I8)
        workspace = word(block, 0, PTR)
        set_word(workspace, _Workspace.TOP, block)
        with f.when(f.compare("==", block, word(workspace, _Workspace.WATCHED, PTR))):
            f.call("settle", workspace)
    f.finish()


def _define_settle(module: Module) -> None:
    """``settle(workspace)``: the chunk at the top, which is watched, has become empty."""
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
    """``grow(workspace, needed)``: so much room in the chunk at the top, if there is memory."""
    f = Function(module, "grow", (PTR, I64), internal=True)
    workspace, needed = f.args
    with f.when(f.compare("<=", needed, MOST, signed=False)):
        top, chunk = (word(workspace, w, PTR) for w in (_Workspace.TOP, _Workspace.CHUNK))
        # Nothing is out: the chunk, if there is one, is the lowest.
        with f.when(_is_some(chunk) & f.compare("==", top, f.address(chunk, LINE, I8))):
            f.call("pop", workspace)
        size = needed + LINE
        # Sizes often grow from call to call, by a little.
        roomy = f.minimum(size + f.binary(">>", size, 1), KEPT)
        f.call("push", workspace, f.maximum(f.maximum(size, roomy), SMALLEST))
    f.finish()


def _define_push(module: Module) -> None:
    """``push(workspace, size)``: a chunk at the top, if there is memory."""
    f = Function(module, "push", (PTR, I64), internal=True)
    workspace, size = f.args
    made = f.allocate(PTR, 1)
    failed = f.call_value("posix_memalign", I32, made, f.const(I64, LINE), size)
    with f.when(f.compare("==", failed, 0)):
        chunk, below = f.load(made, PTR), word(workspace, _Workspace.CHUNK, PTR)
        set_word(chunk, _Chunk.SIZE, size)
        set_word(chunk, _Chunk.BELOW, below)
        set_word(chunk, _Chunk.TOP, word(workspace, _Workspace.TOP))
        set_word(chunk, _Chunk.LIMIT, word(workspace, _Workspace.LIMIT))
        first = f.address(chunk, LINE, I8)
        set_word(workspace, _Workspace.CHUNK, chunk)
        set_word(workspace, _Workspace.TOP, first)
        set_word(workspace, _Workspace.LIMIT, f.address(chunk, size, I8))
        total = word(workspace, _Workspace.TOTAL) + size
        set_word(workspace, _Workspace.TOTAL, total)
        peak = f.maximum(word(workspace, _Workspace.PEAK), total)
        set_word(workspace, _Workspace.PEAK, peak)
        is_kept = is_null(below) & f.compare("<=", size, KEPT)
        set_word(workspace, _Workspace.WATCHED, f.select(is_kept, f.const(PTR, 0), first))
    f.finish()


def _define_pop(module: Module) -> None:
    """``pop(workspace)``: give back the chunk at the top; the one below is watched."""
    f = Function(module, "pop", (PTR,), internal=True)
    (workspace,) = f.args
    chunk = word(workspace, _Workspace.CHUNK, PTR)
    below = word(chunk, _Chunk.BELOW, PTR)
    total = word(workspace, _Workspace.TOTAL) - word(chunk, _Chunk.SIZE)
    set_word(workspace, _Workspace.CHUNK, below)
    set_word(workspace, _Workspace.TOP, word(chunk, _Chunk.TOP))
    set_word(workspace, _Workspace.LIMIT, word(chunk, _Chunk.LIMIT))
    set_word(workspace, _Workspace.TOTAL, total)
    last = is_null(below)
    watched = f.select(last, f.const(PTR, 0), f.address(below, LINE, I8))
    set_word(workspace, _Workspace.WATCHED, watched)
    set_word(workspace, _Workspace.PEAK, f.select(last, 0, word(workspace, _Workspace.PEAK)))
    f.call("free", chunk)
    f.finish()


def _define_new(module: Module) -> None:
    """``new()``: a workspace for this thread; null where there is no memory."""
    f = Function(module, "new", (), result=PTR, internal=True)
    words = f.const(I64, len(_Workspace))
    made = f.allocate(PTR, 1)
    workspace = f.call_value("calloc", PTR, words, f.const(I64, 8))
    f.store(workspace, made)
    with f.when(_is_some(workspace)):
        failed = f.call_value("pthread_setspecific", I32, _key(f), workspace)
        with f.when(f.compare("!=", failed, 0)):
            f.call("free", workspace)
            f.store(f.const(PTR, 0), made)
    f.finish(f.load(made, PTR))


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
