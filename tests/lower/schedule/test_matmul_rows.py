"""Products and the reductions of their rows run block by block, or one after the other."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.intrinsics.tile_sizes import BLOCK_COLUMNS
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.legalize.linear_algebra import matmul
from relax_egraph.lower.legalize.moments import layer_norm, rms_norm
from relax_egraph.lower.legalize.norm import softmax
from relax_egraph.lower.legalize.reduce import max_, mean, sum_
from relax_egraph.lower.pack import pack
from relax_egraph.lower.schedule import schedule
from relax_egraph.lower.schedule.strips import strip_of
from relax_egraph.tir import te
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import IfThenElse, PrimFunc, TensorIntrinsic, TirBlock
from tests.support.kernels import Array, assert_untouched, guarded
from tests.support.scheduled import (
    MICRO_KERNELS,
    K,
    M,
    N,
    arrays,
    assert_same_results,
    loops_of,
    packed_right,
)
from tests.support.widths import WIDTHS

pytestmark = pytest.mark.usefixtures("avx512")  # strips and blocks are of its sizes

SIZES = [(0, 3, 2), (3, 0, 2), (2, 3, 0), (1, 1, 1), (7, 17, 3), (2, 65, 5), (193, 3, 2)]
"""Extents n, m, k: blocks of symbolic columns have 48 rows, and run from 192 rows on."""


def operands(rows: Dim = N, depth: Dim = K, columns: Dim = M) -> tuple[te.Tensor, te.Tensor]:
    return te.placeholder((rows, depth), name="x"), te.placeholder((depth, columns), name="w")


def vector(name: str, size: Dim = M) -> te.Tensor:
    return te.placeholder((size,), name=name)


def created(inputs: tuple[te.Tensor, ...], *outputs: te.Tensor) -> PrimFunc:
    """The function that a build makes of fused operators."""
    return te.create_prim_func(*inputs, *inline_injective(outputs))


def product_and_softmax(rows: Dim = N, depth: Dim = K, columns: Dim = M) -> PrimFunc:
    x, w = operands(rows, depth, columns)
    return created((x, w), softmax(matmul(x, w), axis=1))


def bias_and_layer_norm() -> PrimFunc:
    x, w = operands()
    b, g, shift = vector("b"), vector("g"), vector("shift")
    c = matmul(x, w)
    biased = te.compute((N, M), lambda i, j: c[i, j] + b[j], "biased")
    options = {"axes": (1,), "epsilon": 1e-3, "center": True, "scale": True}
    return created((x, w, b, g, shift), layer_norm(biased, g, shift, **options))  # pyright: ignore


def rms_norm_between_residuals() -> PrimFunc:
    """``rms_norm(x · w + r) + r``, of a batch whose rows are those of one matrix."""
    x, w = te.placeholder((2, N, K), name="x"), te.placeholder((K, M), name="w")
    r, g = te.placeholder((2, N, M), name="r"), vector("g")
    c = matmul(x, w)
    added = te.compute((2, N, M), lambda *i: c[i] + r[i], "added")
    normed = rms_norm(added, g, axes=(2,), epsilon=1e-3)
    return created((x, w, r, g), te.compute((2, N, M), lambda *i: normed[i] + r[i], "out"))


def masked_scores() -> PrimFunc:
    """Scores of heads, which share a mask: batch and rows stay apart."""
    q, k = te.placeholder((2, N, 4), name="q"), te.placeholder((2, 4, M), name="k")
    mask = te.placeholder((N, M), name="mask")
    c = matmul(q, k)
    scores = te.compute((2, N, M), lambda *i: c[i] * 0.5 + mask[i[1:]], "scores")
    return created((q, k, mask), softmax(scores, axis=2))


def all_results() -> PrimFunc:
    """The product, its largest elements and its softmax are results."""
    x, w = operands()
    c = matmul(x, w)
    return created((x, w), c, max_(c, axis=(1,), keepdims=True), softmax(c, axis=1))


def means_of_products() -> PrimFunc:
    x, w = operands()
    return created((x, w), mean(matmul(x, w), axis=(1,), keepdims=False))


def costly_rows_in_another_type() -> PrimFunc:
    """No result has room for the product, nor for its exponentials."""
    x, w = operands()
    c = matmul(x, w)
    e = te.compute((N, M), lambda i, j: te.exp(c[i, j]), "e")
    s = sum_(e, axis=(1,), keepdims=False)
    return created((x, w), te.compute((N, M), lambda i, j: te.cast(e[i, j] / s[i], "float64")))


def read_backwards() -> PrimFunc:
    """A row is read backwards for one result, so that another has to wait."""
    x, w = operands()
    c = matmul(x, w)
    s = sum_(c, axis=(1,), keepdims=False)
    back = te.compute((N, M), lambda i, j: c[i, M - 1 - j] + s[i], "back")
    return created((x, w), back, te.compute((N, M), lambda i, j: c[i, j] * s[i], "out"))


def softmax_of_transposed(rows: Dim = N) -> PrimFunc:
    """``softmax(x · wᵀ)`` of an operand that is copied."""
    x, w = te.placeholder((rows, K), name="x"), te.placeholder((M, K), name="w")
    k = te.reduce_axis(K)
    c = te.compute((rows, M), lambda i, j: te.sum(x[i, k] * w[j, k], k), "c")
    return created((x, w), softmax(c, axis=1))


def costly_bias() -> PrimFunc:
    """The bias is computed once, before."""
    x, w = operands()
    b, c = vector("b"), matmul(x, w)
    e = te.compute((M,), lambda j: te.exp(b[j]), "e")
    return created((x, w, b), softmax(te.compute((N, M), lambda i, j: c[i, j] + e[j]), axis=1))


FUNCTIONS = {
    "softmax": product_and_softmax(),
    "one row": product_and_softmax(1),
    "another type": costly_rows_in_another_type(),
    "layer norm": bias_and_layer_norm(),
    "rms norm": rms_norm_between_residuals(),
    "masked scores": masked_scores(),
    "all results": all_results(),
    "means": means_of_products(),
    "read backwards": read_backwards(),
    "transposed": softmax_of_transposed(),
    "costly bias": costly_bias(),
}


def softmax_of(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def normed(x: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)


def expected_of(name: str, x: Array, w: Array, *others: Array) -> tuple[Array, ...]:
    """The results of each function, by numpy."""
    c = x @ (w.T if name == "transposed" else w)
    match name, others:
        case "layer norm", (b, g, shift):
            biased = c + b
            return (normed(biased - biased.mean(1, keepdims=True)) * g + shift,)
        case "rms norm", (r, g):
            return (normed(c + r) * g + r,)
        case "masked scores", (mask,):
            return (softmax_of(c / 2 + mask),)
        case "costly bias", (b,):
            return (softmax_of(c + np.exp(b)),)
        case "all results", ():
            return c, c.max(1, keepdims=True), softmax_of(c)
        case "means", ():
            return (c.mean(1),)
        case "read backwards", ():
            total = c.sum(1, keepdims=True)
            return c[:, ::-1] + total, c * total
        case _:
            return (softmax_of(c),)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("n", "m", "k"), SIZES)
def test_the_schedule_computes_the_same(name: str, n: int, m: int, k: int) -> None:
    assert_same_results(FUNCTIONS[name], n=n, m=m, k=k)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_anchor_is_matmul_rows(name: str) -> None:
    assert schedule(FUNCTIONS[name]).attrs["schedule"] == "matmul_rows"


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("n", "m", "k"), [(1, 70, 9), (31, 1, 5), (500, 67, 130)])
def test_compiled_it_writes_its_results_and_nothing_else(name: str, n: int, m: int, k: int) -> None:
    function = FUNCTIONS[name]
    scheduled, symbols = schedule(function), {"n": n, "m": m, "k": k}
    kernel = link(compile_kernels({"kernel": scheduled}, None, INTRINSICS))["kernel"]
    inputs = [a / 8 for a in arrays(function.inputs, symbols)]
    shapes = [tuple(dims.evaluate(d, symbols) for d in b.shape) for b in function.outputs]
    results = [guarded(s, b.dtype) for s, b in zip(shapes, function.outputs, strict=True)]

    kernel(*inputs, *results, *(symbols[s] for s in scheduled.symbols))

    expected = expected_of(name, *(a.astype(np.float64) for a in inputs))
    for result, exact in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, exact, rtol=2e-4, atol=2e-5)
        assert_untouched(result)


def test_a_block_of_rows_is_all_columns_of_the_product_and_then_its_rows() -> None:
    scheduled = schedule(product_and_softmax(512, 32, 256))

    tiles = [("parallel", "6"), ("serial", "4")]
    row = [("vectorized", "256")] * 3
    assert loops_of(scheduled)[:2] == tiles
    assert loops_of(scheduled)[3:] == row
    (call,) = [s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]
    assert call.buffers[2][0] is scheduled.outputs[0]
    assert scheduled.allocs == ()


def test_few_rows_are_shared_by_columns_first() -> None:
    scheduled = schedule(product_and_softmax(64, 32, 256))

    assert loops_of(scheduled) == [
        ("parallel", "4"),
        *[("parallel", "64"), *[("vectorized", "256")] * 3],
    ]


def test_a_wide_block_has_fewer_rows() -> None:
    def blocks(columns: Dim) -> tuple[str, str]:
        return loops_of(schedule(product_and_softmax(960, 32, columns)))[0]

    assert blocks(64) == ("parallel", "10")
    assert blocks(1024) == ("parallel", "16")
    assert blocks(4096) == ("parallel", "20")


def test_columns_that_exceed_a_block_come_first() -> None:
    assert loops_of(schedule(product_and_softmax(960, 32, 4097)))[:2] == [
        ("parallel", "10"),
        ("parallel", "65"),
    ]


def test_sizes_that_are_not_known_decide_at_run_time() -> None:
    def conditions(function: PrimFunc) -> list[str]:
        found = [s for s in statements(schedule(function).body) if isinstance(s, IfThenElse)]
        return [str(s.condition) for s in found]

    assert conditions(product_and_softmax(512, 32, 256)) == []
    assert len(conditions(product_and_softmax(N, 32, 256))) == 1
    assert conditions(softmax_of_transposed(512)) == []


def test_the_exponentials_of_a_long_row_overwrite_the_product() -> None:
    scheduled = schedule(product_and_softmax(512, 32, 4096))

    blocks = [s for s in statements(scheduled.body) if isinstance(s, TirBlock)]
    assert {(b.shape, b.scope) for s in blocks for b in s.allocs} == {((1,), "local")}
    assert scheduled.allocs == ()


def test_without_room_in_a_result_the_product_has_a_block_of_its_own() -> None:
    function = costly_rows_in_another_type()

    blocks = [s for s in statements(schedule(function).body) if isinstance(s, TirBlock)]

    shapes = {b.name: b.shape for s in blocks for b in s.allocs if b.scope == "global"}
    width = strip_of("float32")
    panel = (BLOCK_COLUMNS // width, K, width)
    assert shapes == {"block0": (48, M), "matmul0": (N, M), "panel0": panel, "e": (M,)}


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_constant_right_operand_is_packed(n: int) -> None:
    function = product_and_softmax(N, 6, 100)

    scheduled, panels = packed_right(function)

    assert scheduled.attrs == {"packed": (1, 6, 100, 64), "schedule": "matmul_rows"}
    x, w = arrays(function.inputs, {"n": n})
    (result,) = interpret(scheduled, [x, pack(w, panels)], {"n": n}, MICRO_KERNELS)
    np.testing.assert_allclose(result, softmax_of(x @ w), rtol=1e-4, atol=1e-6)


def reduced_over_rows() -> PrimFunc:
    x, w = operands()
    return created((x, w), sum_(matmul(x, w), axis=(0,), keepdims=False))


def product_of_normed() -> PrimFunc:
    """The rows are reduced before the product, too."""
    x, w = operands()
    return created((x, w), softmax(matmul(softmax(x, axis=1), w), axis=1))


def rows_and_columns_mixed() -> PrimFunc:
    x, w = operands(M, K, M)
    c = matmul(x, w)
    s = sum_(c, axis=(1,), keepdims=False)
    return created((x, w), te.compute((M, M), lambda i, j: c[i, j] * s[j], "out"))


@pytest.mark.parametrize(
    "function", [reduced_over_rows(), product_of_normed(), rows_and_columns_mixed()]
)
def test_other_reductions_have_another_anchor(function: PrimFunc) -> None:
    assert schedule(function).attrs["schedule"] != "matmul_rows"
    assert_same_results(function, n=3, m=5, k=2)


@pytest.mark.parametrize("target", WIDTHS)
@pytest.mark.parametrize("n", [5, 500])
def test_threads_do_not_change_the_result(n: int, target: str) -> None:
    module = rx.parse(
        """
@R.function
def main(x: R.Tensor(("n", 33), "float32"), w: R.Tensor((33, 500), "float32")):
    with R.dataflow():
        a = R.matmul(x, w)
        out = R.nn.softmax(a)
        R.output(out)
    return out
"""
    )
    executable = rx.build(rx.optimize(module), target=target)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(s, np.float32) for s in ((n, 33), (33, 500)))

    alone, *shared = (
        rx.VirtualMachine(executable, num_threads=threads)["main"](x, w) for threads in (1, 2, 3)
    )

    assert [p.schedule for p in executable.promises.values()] == ["matmul_rows"]
    np.testing.assert_allclose(alone, softmax_of(x @ w), rtol=1e-4, atol=1e-6)
    for result in shared:
        np.testing.assert_array_equal(result, alone)
