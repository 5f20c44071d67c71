"""``T.if_then_else``: what is not chosen reads no memory."""

import subprocess
import sys

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.script import print_module
from relax_egraph.tir.interpret import run_in_place

SHIFTED = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def shifted(x: T.Buffer(({n},), "float32"), y: T.Buffer(({n}, 3), "float32")):
        for i, j in T.grid({n}, 3):
            with T.block("shifted"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.if_then_else(vi >= vj, x[vi - vj], T.float32(-1)) + T.if_then_else(
                    vi + vj < {n}, x[vi + vj] * T.if_then_else(vj > 0, x[vi - vi], T.float32(2)),
                    T.float32(0),
                )

    @R.function
    def main(x: R.Tensor(({n},), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.shifted, (x,), out_sinfo=R.Tensor(({n}, 3), "float32"))
            R.output(y)
        return y
"""


def expected(x: np.ndarray) -> np.ndarray:
    n = len(x)
    left = [[x[i - j] if i >= j else -1 for j in range(3)] for i in range(n)]
    right = [
        [x[i + j] * (x[0] if j > 0 else 2) if i + j < n else 0 for j in range(3)] for i in range(n)
    ]
    return (np.asarray(left, np.float32) + np.asarray(right, np.float32)).reshape(n, 3)


def text(n: int | None) -> str:
    return SHIFTED.format(n='"n"') if n is None else SHIFTED.format(n=n)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 37])
@pytest.mark.parametrize("known", [True, False], ids=["static", "symbolic"])
def test_a_side_is_evaluated_where_it_is_chosen(n: int, known: bool) -> None:
    written = text(n if known else None)
    if not known:
        written = written.replace('T.grid("n"', "T.grid(n").replace('vj < "n"', "vj < n")
        written = written.replace('R.Tensor(("n", 3)', "R.Tensor((n, 3)")
    module = parse(written)
    x = np.random.default_rng(n).uniform(-2, 2, n).astype(np.float32)

    built = VirtualMachine(build(module))["main"](x)
    evaluated = evaluate(module, "main", x, prim_func=run_in_place)

    np.testing.assert_allclose(built, expected(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(evaluated, expected(x), rtol=1e-6)
    assert "T.if_then_else(vi >= vj, x[vi - vj], T.float32(-1.0))" in print_module(module)


GUARDED = """
import ctypes, mmap, sys
import numpy as np
from relax_egraph import VirtualMachine, build, parse

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 3 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
for at in (start, start + 2 * page):
    assert libc.mprotect(ctypes.c_void_p(at), page, 0) == 0
size = int(sys.argv[1])
main = VirtualMachine(build(parse(sys.stdin.read())))["main"]
for offset in (page, 2 * page - 4 * size):
    x = np.frombuffer(memory, np.float32, size, offset)
    x[:] = 1
    main(x)
print("no fault")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect through ctypes")
def test_no_memory_outside_of_a_buffer_is_touched() -> None:
    run = subprocess.run(
        [sys.executable, "-c", GUARDED, "48"], input=text(48), capture_output=True, text=True
    )

    assert (run.returncode, run.stdout) == (0, "no fault\n"), run.stderr[-2000:]
