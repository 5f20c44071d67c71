"""Which outputs may lie where an input does, and that it changes no bit of what kernels compute."""

from textwrap import dedent, indent

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir import dims
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import Kernel, compile_kernels, link
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.tir.in_place import in_place_pairs
from relax_egraph.tir.stmt import PrimFunc
from tests.support.kernels import sample
from tests.support.random_programs import random_program

ROWS = 'x: T.Buffer(("n", 8), "float32"), o: T.Buffer(("n", 8), "float32")'
SEVERAL = (
    'x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), '
    'o: T.Buffer(("n",), "float32"), p: T.Buffer(("n",), "float32")'
)
TWO = 'T.func_attr({"num_outputs": 2})\n'


def function(params: str, body: str) -> PrimFunc:
    """The loop function of these buffers with this body."""
    lines = indent(dedent(body).strip(), " " * 8)
    head = f"@I.ir_module\nclass M:\n    @T.prim_func\n    def f({params}):\n"
    found = rx.parse(f"{head}        n = T.int64()\n{lines}\n")["f"]
    assert isinstance(found, PrimFunc)
    return found


@pytest.mark.parametrize(
    ("params", "body", "pairs"),
    [
        pytest.param(
            ROWS,
            """
            for i, j in T.grid(n, 8):
                o[i, j] = x[i, j] * x[i, j]
            """,
            {(0, 0)},
            id="each element where it was",
        ),
        pytest.param(
            ROWS,
            """
            for c in T.parallel((n * 8 + 127) // 128):
                for i in T.vectorized(T.min(128, n * 8 - c * 128)):
                    o[0, c * 128 + i] = x[0, c * 128 + i] + x[0, c * 128 + i]
            """,
            {(0, 0)},
            id="in pieces",
        ),
        pytest.param(
            ROWS,
            """
            for i in T.parallel(n):
                with T.block("row"):
                    s = T.alloc_buffer((1,), "float32", scope="local")
                    s[0] = T.float32(0.0)
                    for j in T.vectorized(8):
                        s[0] = s[0] + x[i, j]
                    for j in T.vectorized(8):
                        o[i, j] = x[i, j] / s[0]
            """,
            {(0, 0)},
            id="rows that are read before they are written",
        ),
        pytest.param(
            ROWS,
            """
            for b in T.parallel((n + 3) // 4):
                for i in T.serial(T.min(4, n - b * 4)):
                    for j in T.vectorized(8):
                        o[b * 4 + i, j] = x[b * 4 + i, j]
            """,
            {(0, 0)},
            id="rows in tiles",
        ),
        pytest.param(
            SEVERAL,
            TWO
            + """
for i in T.vectorized(n):
    o[i] = x[i] + y[i]
    p[i] = x[i] - y[i]
            """,
            {(0, 1), (1, 1)},
            id="the later one of two outputs",
        ),
        pytest.param(
            'x: T.Buffer(("n",), "float32"), i: T.Buffer(("n",), "int64"), '
            'o: T.Buffer(("n",), "float32")',
            """
            for k in T.serial(n):
                o[k] = x[i[k]]
            """,
            set[tuple[int, int]](),
            id="gathered",
        ),
        pytest.param(
            ROWS,
            """
            for i, j in T.grid(n, 8):
                o[i, j] = x[i, 7 - j]
            """,
            set[tuple[int, int]](),
            id="backwards",
        ),
        pytest.param(
            ROWS,
            """
            for i, j in T.grid(n, 8):
                o[i, j] = x[i, j] - x[i, 0]
            """,
            set[tuple[int, int]](),
            id="the first of a row, which is written by then",
        ),
        pytest.param(
            ROWS,
            """
            for i, j, k in T.grid(n, 8, 2):
                o[i, j] = x[i, j]
            """,
            set[tuple[int, int]](),
            id="twice",
        ),
        pytest.param(
            ROWS,
            """
            for i, j in T.grid(n, 8):
                o[i, j] = T.float32(0.0)
            for i, j in T.grid(n, 8):
                o[i, j] = o[i, j] + x[i, j]
            """,
            set[tuple[int, int]](),
            id="after it was cleared",
        ),
        pytest.param(
            ROWS,
            """
            for i, j in T.grid(n, 9):
                o[i, j] = x[i, j]
            """,
            set[tuple[int, int]](),
            id="rows that overlap",
        ),
        pytest.param(
            ROWS,
            """
            for i, j in T.grid(n, 8):
                with T.block("sum"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        o[vi, 0] = T.float32(0.0)
                    o[vi, 0] = o[vi, 0] + x[vi, vj]
            """,
            set[tuple[int, int]](),
            id="reduced",
        ),
        pytest.param(
            'x: T.Buffer(("n",), "float32"), o: T.Buffer(("n",), "float64")',
            """
            for i in T.serial(n):
                o[i] = T.Cast("float64", x[i])
            """,
            set[tuple[int, int]](),
            id="elements of another size",
        ),
    ],
)
def test_an_output_may_replace_an_input_that_is_read_first(
    params: str, body: str, pairs: set[tuple[int, int]]
) -> None:
    assert in_place_pairs(function(params, body)) == pairs


NETWORK = """
@R.function
def main(
    x: R.Tensor(("n", 24), "float32"),
    w: R.Tensor((24, 24), "float32"),
    v: R.Tensor((24,), "float32"),
):
    a = R.nn.softmax(x)
    b = R.nn.layer_norm(a, v, v, axes=[-1])
    c = R.add(R.matmul(b, w), a)
    d = R.cumsum(c, axis=1)
    e = R.nn.gelu(R.multiply(d, c))
    f = R.matmul(R.exp(e), w)
    return R.nn.log_softmax(R.subtract(f, x))
"""


def modules() -> dict[str, rx.IRModule]:
    """Programs of many kinds of kernels, as they are and optimized."""
    found = {"network": rx.parse(NETWORK)}
    found |= {f"program {seed}": random_program(seed).module for seed in (3, 8, 14)}
    return found | {f"{name}, optimized": rx.optimize(m) for name, m in found.items()}


def test_kernels_in_place_compute_the_same_bits() -> None:
    tried = 0
    for name, module in modules().items():
        functions = {
            k: f
            for k, f in lower_module(module).functions.items()
            if isinstance(f, PrimFunc) and in_place_pairs(f)
        }
        kernels = link(compile_kernels(functions, intrinsics=INTRINSICS)) if functions else {}
        for kernel, f in functions.items():
            for size in (1, 17, 40):
                tried += assert_same_in_place(f"{name}: {kernel}", f, kernels[kernel], size)
    assert tried > 40


def assert_same_in_place(what: str, f: PrimFunc, kernel: Kernel, size: int) -> int:
    """Run `kernel` with each output that may be in place, where it is; how many there were."""
    symbols = {name: size + 3 * k for k, name in enumerate(f.symbols)}
    shapes = [tuple(dims.evaluate(d, symbols) for d in b.shape) for b in f.params]
    given = list(zip(f.inputs, shapes, strict=False))
    inputs = [np.array(sample(s, b.dtype, k)) for k, (b, s) in enumerate(given)]
    outputs = [np.zeros(s, b.dtype) for b, s in zip(f.outputs, shapes[len(given) :], strict=True)]
    apart = [np.copy(o) for o in outputs]
    kernel(*map(np.copy, inputs), *apart, *symbols.values())
    pairs = [(i, j) for i, j in in_place_pairs(f) if inputs[i].size == outputs[j].size]
    for i, j in pairs:
        operands, within = [np.array(a) for a in inputs], [np.copy(o) for o in outputs]
        within[j] = operands[i].reshape(-1).view(outputs[j].dtype).reshape(outputs[j].shape)
        kernel(*operands, *within, *symbols.values())
        for have, want in zip(within, apart, strict=True):
            assert have.tobytes() == want.tobytes(), f"{what}: output {j} in place of {i}"
    return len(pairs)
