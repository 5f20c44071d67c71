"""Scratch memory of kernels: taken from the workspace of a thread, which keeps it."""

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.jit import compile_kernels, link, linking
from relax_egraph.lower.jit.library import new_library
from relax_egraph.lower.jit.machine_code import compiled_object
from relax_egraph.lower.runtime.threads import thread_pool
from relax_egraph.lower.runtime.workspace import workspace_functions
from relax_egraph.lower.runtime.workspace_code import (
    END,
    KEPT,
    KEY,
    LINE,
    RELEASE,
    SMALLEST,
    TAKE,
    heap_module,
    workspace_module,
)
from relax_egraph.tir.expr import Buffer, TirVar
from relax_egraph.tir.stmt import PrimFunc, Store, TirBlock, seq
from relax_egraph.vm import Executable
from tests.support.kernels import buffer, loop, m, n

needs_threads = pytest.mark.skipif(os.name != "posix", reason="needs threads of POSIX")

_TAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_MEMALIGN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t
)
_CALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_SPECIFIC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
_SET_SPECIFIC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p)

ENOMEM = 12


@dataclass
class Stack:
    """A workspace whose heap is watched: `chunks` are the sizes of those it has, `made` of all.

    The heap has `limit` bytes at most.
    """

    limit: int = 1 << 60
    chunks: dict[int, int] = field(default_factory=dict[int, int])
    made: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        memory = ctypes.CDLL(None)
        memory.posix_memalign.argtypes = (
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_size_t,
            ctypes.c_size_t,
        )
        memory.free.argtypes = (ctypes.c_void_p,)
        self.own = ctypes.c_void_p()
        words = (ctypes.c_int64 * 8)()

        def memalign(to: Any, alignment: int, size: int) -> int:
            if sum(self.chunks.values()) + size > self.limit:
                return ENOMEM
            self.made.append(size)
            status = memory.posix_memalign(to, alignment, size)
            self.chunks[to[0]] = size
            return status

        def free(place: int) -> None:
            if place != ctypes.addressof(words):
                del self.chunks[place]
                memory.free(place)

        def calloc(count: int, size: int) -> int:
            assert count * size <= ctypes.sizeof(words)
            return ctypes.addressof(words)

        def get_specific(key: int) -> int | None:
            return self.own.value

        def set_specific(key: int, value: int) -> int:
            self.own.value = value
            return 0

        callbacks = {
            "posix_memalign": _MEMALIGN(memalign),
            "free": _RELEASE(free),
            "calloc": _CALLOC(calloc),
            "pthread_getspecific": _SPECIFIC(get_specific),
            "pthread_setspecific": _SET_SPECIFIC(set_specific),
        }
        key = ctypes.c_int64(0)
        known = {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in callbacks.items()}
        known[KEY] = ctypes.addressof(key)
        data = compiled_object(workspace_module(host()), host())
        library = new_library([data], [TAKE, RELEASE, END], known)
        self.kept = (callbacks, key, words, library)
        self.take = _TAKE(library.tracker[TAKE])
        self.release = _RELEASE(library.tracker[RELEASE])
        self._end = _RELEASE(library.tracker[END])

    def end(self) -> None:
        """What the end of the thread does."""
        self._end(self.own)

    def run(self, *sizes: int) -> None:
        """Take and fill blocks of `sizes`, and release them."""
        taken = [self.take(size) for size in sizes]
        assert None not in taken
        for place, size in zip(taken, sizes, strict=True):
            ctypes.memset(place, 0xA5, size)
        for place in reversed(taken):
            self.release(place)


# --- one stack ------------------------------------------------------------------------


@needs_threads
def test_blocks_lie_one_after_the_other_on_lines_of_the_cache() -> None:
    stack = Stack()

    sizes = [0, 1, 64, 65, 1000]
    places = [stack.take(size) for size in sizes]

    rounded = [(size + LINE - 1) // LINE * LINE for size in sizes]
    assert [place % LINE for place in places] == [0] * len(places)
    assert np.diff(places).tolist() == [LINE + size for size in rounded[:-1]]
    assert stack.made == [SMALLEST]


@needs_threads
def test_what_is_released_is_taken_again() -> None:
    stack = Stack()
    first, second = stack.take(100), stack.take(100)

    stack.release(second)
    assert stack.take(5000) == second
    stack.release(second)
    stack.release(first)

    assert stack.take(7) == first


@needs_threads
def test_the_heap_is_asked_for_nothing_when_a_call_is_repeated() -> None:
    stack = Stack()
    stack.run(50_000, 300_000, 1_000_000, 10)
    made = len(stack.made)

    for _ in range(3):
        stack.run(50_000, 300_000, 1_000_000, 10)
        stack.run(10, 20)

    assert len(stack.made) == made
    assert len(stack.chunks) == 1
    assert 1_350_000 < sum(stack.chunks.values()) < 3_000_000


@needs_threads
def test_a_block_that_grows_slowly_asks_the_heap_seldom() -> None:
    stack = Stack()

    for size in range(1000, 1_000_000, 1000):
        stack.run(size)

    assert len(stack.made) < 10


@needs_threads
@pytest.mark.parametrize("sizes", [(KEPT + 1,), (KEPT, KEPT), (1000, 5 * KEPT), (5 * KEPT, 1000)])
def test_a_thread_keeps_no_more_than_it_may(sizes: tuple[int, ...]) -> None:
    stack = Stack()

    for _ in range(2):
        stack.run(*sizes)

        assert sum(stack.chunks.values()) <= KEPT


@needs_threads
def test_all_is_given_back_when_the_thread_ends() -> None:
    stack = Stack()
    stack.run(1000, 1 << 20)

    stack.end()

    assert stack.chunks == {}


@needs_threads
@pytest.mark.parametrize("size", [1 << 20, 1 << 46, (1 << 63) - 1, -1, -64, -(1 << 63)])
def test_there_is_no_block_where_there_is_no_memory(size: int) -> None:
    stack = Stack(limit=1 << 20)
    below = stack.take(100)

    assert stack.take(size) is None

    stack.release(None)
    assert stack.take(100) == below + 128 + LINE
    stack.run(1000)


@needs_threads
def test_blocks_taken_in_any_depth_keep_their_bytes() -> None:
    stack, random = Stack(), np.random.default_rng(0)
    out: list[tuple[int, int, int]] = []

    for turn in range(3000):
        if out and random.random() < 0.5:
            place, size, fill = out.pop()
            assert ctypes.string_at(place, size) == bytes([fill]) * size
            stack.release(place)
        else:
            size = int(2 ** random.uniform(0, 20))
            place = stack.take(size)
            ctypes.memset(place, turn % 251, size)
            out.append((place, size, turn % 251))
    while out:
        stack.release(out.pop()[0])

    assert len(stack.chunks) == 1


def test_systems_without_threads_take_from_the_heap() -> None:
    library = new_library([compiled_object(heap_module(host()), host())], [TAKE, RELEASE], {})
    take, release = _TAKE(library.tracker[TAKE]), _RELEASE(library.tracker[RELEASE])

    places = [take(size) for size in (0, 1, 1000)]

    assert [place % LINE for place in places] == [0, 0, 0]
    assert [take(size) for size in (-1, (1 << 63) - 1, 1 << 46)] == [None] * 3
    for place in (*places, None):
        release(place)


# --- threads and processes ------------------------------------------------------------


@pytest.fixture
def take() -> Any:
    return _TAKE(workspace_functions()[TAKE])


@pytest.fixture
def release() -> Any:
    return _RELEASE(workspace_functions()[RELEASE])


def test_each_thread_has_a_workspace_of_its_own(take: Any, release: Any) -> None:
    together = Barrier(4)

    def place() -> int:
        together.wait()
        taken = take(1000)
        together.wait()
        release(taken)
        return taken

    with ThreadPoolExecutor(4) as pool:
        places = [pool.submit(place) for _ in range(4)]
        assert len({place.result() for place in places}) == 4


ENDING = """
import ctypes, os
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

from relax_egraph.lower.runtime.workspace import workspace_functions
from relax_egraph.lower.runtime.workspace_code import RELEASE, TAKE

take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(workspace_functions()[TAKE])
release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(workspace_functions()[RELEASE])

def run():
    taken = take(8 << 20)
    ctypes.memset(taken, 1, 8 << 20)
    release(taken)

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

before = resident()
for _ in range(100):  # 800 MB in all
    thread = Thread(target=run)
    thread.start()
    thread.join()
limit = monotonic() + 30  # Python joins a thread before the system has ended it
while resident() - before >= 200 << 20 and monotonic() < limit:
    sleep(0.01)
assert resident() - before < 200 << 20, resident() - before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of memory")
def test_threads_that_end_leave_no_memory_behind() -> None:
    # glibc keeps up to 16 MB of freed memory in each arena, and has 8 arenas a core
    done = run_fresh(ENDING, MALLOC_ARENA_MAX="1")

    assert done.returncode == 0, done.stderr


def run_fresh(script: str, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A script in a new process, with `more` in its environment."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **more}
    command = [sys.executable, "-c", script, *args]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_goes_on_with_the_workspace_of_its_thread(take: Any, release: Any) -> None:
    taken = take(1000)

    child = os.fork()
    if child == 0:
        release(taken)
        os._exit(0 if take(1000) == taken else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    release(taken)


# --- kernels --------------------------------------------------------------------------


def sums(*, shared: bool) -> PrimFunc:
    """The sums of all but the first element of rows, which a buffer is filled with before.

    It belongs to each task if the rows are `shared`.
    """
    i, j = TirVar("i"), TirVar("j")
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", m)
    row = Buffer("row", (n,), "float32")
    block = TirBlock(
        "row",
        (),
        seq(
            loop(j, n, Store(row, (j,), x[i, j] * 2.0)),
            Store(out, (i,), row[0] * 0.0),
            loop(j, n, Store(out, (i,), out[i] + row[j])),
        ),
        allocs=(row,),
    )
    return PrimFunc((x, out), loop(i, m, block, "parallel" if shared else "serial"))


@pytest.fixture(params=["built-in", "ctypes"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "ctypes":
        monkeypatch.setattr(linking, "layout_is_known", lambda: False)


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("columns", [1 << 62, 1 << 61, 1 << 50, 1 << 44])
def test_a_kernel_says_that_there_is_no_memory(columns: int, shared: bool, threads: int) -> None:
    compiled = compile_kernels({"sums": sums(shared=shared)})
    kernel = link(compiled, thread_pool(threads))["sums"]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out, before = np.zeros(3, np.float32), np.full(3, 7, np.float32)

    with pytest.raises(MemoryError):
        kernel(x, before, 3, columns)
    kernel(x, out, 3, 4)

    assert before.tolist() == [7, 7, 7]
    np.testing.assert_array_equal(out, x.sum(1) * 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_run_in_several_threads_at_once(threads: int) -> None:
    compiled = compile_kernels({"sums": sums(shared=True)})
    kernel = link(compiled, thread_pool(threads))["sums"]

    def run(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(50):
            rows, columns = random.integers(1, 60), int(2 ** random.uniform(0, 15))
            x = random.integers(0, 9, (rows, columns)).astype(np.float32)
            out = np.zeros(rows, np.float32)
            kernel(x, out, rows, columns)
            np.testing.assert_array_equal(out, x.sum(1) * 2)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(run, seed) for seed in range(8)]:
            done.result()


MODULE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def reverse(x: T.Buffer(("m", "n"), "float32"), y: T.Buffer(("m", "n"), "float32")):
        m = T.int64()
        n = T.int64()
        row = T.alloc_buffer((n,), "float32")
        for i in range(m):
            for j in range(n):
                with T.block("row"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    row[vj] = x[vi, n - 1 - vj]
            for j in range(n):
                with T.block("y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = row[vj]

    @R.function
    def main(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("m", "n"), "float32"):
        cls = Module
        y = R.call_tir(cls.reverse, (x,), out_sinfo=R.Tensor((m, n), "float32"))
        return y
"""


def takes_scratch(executable: Executable) -> bool:
    return any(TAKE.encode() in data for kernels in executable.kernels for data in kernels.objects)


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_a_machine_says_that_there_is_no_memory(engine: Any) -> None:
    executable = rx.build(rx.parse(MODULE))
    vm = rx.VirtualMachine(executable, engine=engine)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert takes_scratch(executable)

    with pytest.raises(MemoryError):
        vm["main"](np.zeros((0, 1 << 50), np.float32))

    np.testing.assert_array_equal(vm["main"](x), x[:, ::-1])


FRESH = """
import sys
import numpy as np
import relax_egraph as rx

x = np.arange(6000, dtype=np.float32).reshape(2, 3000)
for file in sys.argv[1:]:
    y = rx.VirtualMachine(rx.load(file))["main"](x)
    np.testing.assert_array_equal(y, x[:, ::-1])
"""


def test_files_are_linked_with_workspaces_where_they_are_loaded(tmp_path: Path) -> None:
    kinds = {"native": ("native",), "generic": ("generic",), "portable": ()}
    files = [tmp_path / f"{kind}.rxe" for kind in kinds]
    for file, targets in zip(files, kinds.values(), strict=True):
        rx.build(rx.parse(MODULE), targets, portable=not targets).save(file)

    done = run_fresh(FRESH, *map(str, files))

    assert done.returncode == 0, done.stderr
