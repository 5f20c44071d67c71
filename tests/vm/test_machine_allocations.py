"""What a call takes of the heap: memory for its result, and nothing else after the first."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from examples.digits.model import Digits, build_model
from relax_egraph.ir.module import IRModule

COUNTER = """
#include <errno.h>
#include <stddef.h>
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static long count;
long allocations(void) { return count; }
void *malloc(size_t n) { count++; return __libc_malloc(n); }
void *calloc(size_t m, size_t n) { count++; return __libc_calloc(m, n); }
void *realloc(void *p, size_t n) { count++; return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { count++; return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { count++; return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
  count++;
  *p = __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}
"""
"""Counts what the heap is asked for, by whomever; it is loaded before the C library."""

COUNTING = """
import ctypes, gc, sys
from itertools import repeat
from pathlib import Path
import numpy as np
import relax_egraph as rx

allocations = ctypes.CDLL(None).allocations
allocations.restype = ctypes.c_long

def counted(run, *args, calls=100):
    for _ in range(3):
        run(*args)
    gc.disable()
    before = allocations()
    for _ in repeat(None, calls):
        run(*args)
    return (allocations() - before) // calls  # which leaves out what is done once

for file in sorted(Path(sys.argv[1]).glob("*.rxe")):
    vm = rx.VirtualMachine(rx.load(file), engine="native", num_threads=int(sys.argv[2]))
    inputs = [np.zeros(**a) for a in eval(file.with_suffix(".txt").read_text())]
    result = vm["main"](*inputs)
    alone = counted(np.empty, result.shape, result.dtype)
    print(file.stem, alone, counted(vm["main"], *inputs))
"""

IN_PLACE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(x: T.Buffer(("n",), "float32")):
        T.func_attr({"num_outputs": 0})
        for i in range(n):
            with T.block("double"):
                v = T.axis.spatial(n, i)
                x[v] = x[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        y = R.call_tir_inplace(
            cls.double, (x,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32")
        )
        return R.call_tir_inplace(
            cls.double, (y,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32")
        )
"""

LAYER = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32")
    ) -> R.Tensor(("n", 64), "float32"):
        with R.dataflow():
            a = R.nn.gelu(R.matmul(x, w))
            b = R.nn.softmax(R.matmul(a, R.permute_dims(w)), axis=-1)
            c = R.nn.layer_norm(
                R.add(a, b), R.ones(R.shape([64]), "float32"), R.zeros(R.shape([64]), "float32"),
                axes=[-1],
            )
            y = R.divide(c, R.sum(R.exp(c), axis=0))
            R.output(y)
        return y
"""

Given = list[dict[str, object]]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs LD_PRELOAD and a C compiler"
)


def models() -> Mapping[str, tuple[IRModule, Given]]:
    """Modules, and the arrays that they are called with."""
    digits = build_model(Digits.load().weights)
    floats = {"dtype": "float32"}
    encoded: Given = [{"shape": (2, 7, 64), **floats}, {"shape": (2, 7), "dtype": "int64"}]
    return {
        "digits": (digits, [{"shape": (1, 64), **floats}]),
        "encoder": (rx.optimize(encoder(Sizes(1))), encoded),
        "in_place": (rx.parse(IN_PLACE), [{"shape": (50,), **floats}]),
        "layer": (rx.parse(LAYER), [{"shape": (5, 64), **floats}, {"shape": (64, 64), **floats}]),
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models, and with what counts allocations."""
    folder = tmp_path_factory.mktemp("models")
    for name, (module, given) in models().items():
        rx.build(module).save(folder / f"{name}.rxe")
        (folder / f"{name}.txt").write_text(repr(given))
    source = folder / "counter.c"
    source.write_text(COUNTER)
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", folder / "counter.so", source]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module", params=[1, 2])
def counts(saved: Path, request: pytest.FixtureRequest) -> Mapping[str, list[str]]:
    """How often the heap is asked: for an array like the result, and in a call."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(saved / "counter.so"),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-c", COUNTING, saved, str(request.param)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: counts for name, *counts in map(str.split, done.stdout.splitlines())}


@pytest.mark.parametrize("name", ["digits", "encoder", "layer"])
def test_the_heap_is_asked_for_the_result_alone(counts: Mapping[str, list[str]], name: str) -> None:
    alone, in_call = counts[name]

    assert int(in_call) == int(alone) > 0


def test_the_heap_is_asked_for_nothing_where_an_argument_is_the_result(
    counts: Mapping[str, list[str]],
) -> None:
    assert counts["in_place"][1] == "0"
