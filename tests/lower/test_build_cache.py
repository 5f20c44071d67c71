"""What is built is the same for all processes, whatever they find in the cache."""

import os
import subprocess
import sys
from pathlib import Path

from relax_egraph.lower.jit.object_cache import ENVIRONMENT

PROGRAM = """
from hashlib import blake2b
import numpy as np
import relax_egraph as rx
from relax_egraph import ir

n = ir.symbol("n")
bb = ir.BlockBuilder()
x = ir.Var("x", ir.tensor((1, 4, n, 32), "float32"))
with bb.function("main", [x]):
    with bb.dataflow():
        seen = bb.emit(ir.call("nn.attention", x, x, x))
        w = ir.const(np.arange(32 * 20, dtype=np.float32).reshape(32, 20))
        out = bb.emit_output(ir.call("nn.softmax", ir.call("matmul", seen, w)))
    bb.emit_func_output(out)
executable = rx.build(bb.get())
print(blake2b(executable.to_bytes()).hexdigest())
"""


def start(cache: str, seed: int) -> "subprocess.Popen[str]":
    """A process that builds the module; sets are in another order for each `seed`."""
    paths = os.pathsep.join(filter(None, sys.path))
    known = {ENVIRONMENT: cache, "PYTHONHASHSEED": str(seed), "PYTHONPATH": paths}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **known},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def alone(cache: str) -> str:
    """What the program prints in a process of its own."""
    printed, errors = start(cache, 3).communicate(timeout=120)
    assert printed, errors
    return printed


def test_processes_build_the_same_whatever_the_cache_holds(tmp_path: Path) -> None:
    """An empty one that two fill at once, a full one, a damaged one, none."""
    cache = str(tmp_path)

    processes = [start(cache, seed) for seed in (1, 2)]
    first, second = (process.communicate(timeout=120) for process in processes)
    entries = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    full = alone(cache)
    for name in sorted(entries)[::2]:
        (tmp_path / name).write_bytes(entries[name][:-1])
    damaged = alone(cache)
    mended = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert [process.returncode for process in processes] == [0, 0], first[1] + second[1]
    assert first[0] == second[0] == full == damaged == alone("off")
    assert len(entries) > 2
    assert mended == entries
