"""Machines as garbage: the collector frees them in any order, while finalizers still call them.

Programs of their own, as an access to freed memory ends a process.
"""

import gc
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from relax_egraph import build, parse
from relax_egraph.vm.pool import StoragePool
from relax_egraph.vm.storage import Bytes
from tests.support.native import MODULE, W, x_of

CALLED_BY_FINALIZERS = """
import gc, sys
import numpy as np
from relax_egraph.loading import load
from relax_egraph.vm.machine import VirtualMachine

x, w = np.load(sys.argv[2]), np.load(sys.argv[3])

class User:
    def __init__(self, main):
        self.main, self.itself = main, self

    def __del__(self):
        print(self.main(x, w)[0].sum(), flush=True)

def used():
    main = VirtualMachine(load(sys.argv[1]), num_threads=1, engine=sys.argv[4])["main"]
    before, after = User(main), User(main)  # the collector takes old objects first
    before.other, after.other = after, before

gc.disable()
used()
gc.collect()
main = User(VirtualMachine(load(sys.argv[1]), num_threads=1, engine=sys.argv[4])["main"])
"""

FREED_AFTER_ITS_SELF = """
import gc, sys
import numpy as np
from relax_egraph.loading import load

values = []
pattern = np.uint64(0x01010101FFFFFFFF).view(np.float64).item()  # as flags: all of them

class OverwritesFreedMemory:
    def __del__(self):
        values.extend(pattern * 1.0 for _ in range(20_000))

executable = load(sys.argv[1])
gc.disable()
for _ in range(3):
    blocks = [bytes([byte]) * 47 for byte in [255] * 5_000]
    del blocks  # so that what lies beyond a builtin is no null pointer
    kernel = [*executable.linker(executable, 1).values()][0]
    # The array hides the object from the collector: it ends when the list does, before the kernel.
    hidden = np.empty(1, object)
    hidden[0] = OverwritesFreedMemory()
    kernel.__self__.cycle = [kernel, hidden]
    del kernel, hidden
    gc.collect()
    assert values
    values.clear()
"""


def output_of(program: str, *arguments: object) -> str:
    """What `program` prints; it has to end well, and without a word of errors."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.rxe"
    build(parse(MODULE)).save(path)
    return path


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_finalizers_call_a_machine_that_is_garbage_as_they_are(
    saved: Path, tmp_path: Path, engine: str
) -> None:
    x = x_of(5)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", W)

    printed = output_of(CALLED_BY_FINALIZERS, saved, tmp_path / "x.npy", tmp_path / "w.npy", engine)

    assert printed.split() == [str(-np.square(x + W).sum())] * 3


def test_a_kernel_is_freed_after_the_collector_has_emptied_its_self(saved: Path) -> None:
    assert output_of(FREED_AFTER_ITS_SELF, saved) == ""


def test_a_finalizer_takes_from_the_pool_while_the_pool_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size, taken = 1 << 20, list[Bytes]()
    pool = StoragePool()
    pool.take(size)  # is free again

    class Taker:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            taken.append(pool.take(size))

    def collecting(owner: Bytes, start: int, size: int) -> Bytes:
        gc.collect()
        return owner[start : start + size]

    def work() -> None:
        taken.append(pool.take(size))

    monkeypatch.setattr("relax_egraph.vm.pool._part", collecting)
    Taker()
    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(timeout=10)

    assert not thread.is_alive()
    first, second = taken
    assert not np.shares_memory(first, second)
