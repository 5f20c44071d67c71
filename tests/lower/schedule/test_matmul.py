"""Products of matrices run by tiles, with what follows them on the hot tile."""

from collections.abc import Iterator

import pytest

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.emit.machine import scheduled_machine, scheduling_for
from relax_egraph.lower.intrinsics.tile_sizes import strip
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.legalize.linear_algebra import matmul
from relax_egraph.lower.schedule import matmul as matmul_schedule
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.expr import binary
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import For, IfThenElse, PrimFunc, TensorIntrinsic, TirBlock
from tests.support.scheduled import K, M, N, assert_same_results, loops_of

pytestmark = pytest.mark.usefixtures("avx512")  # strips and blocks are of its sizes

PAIR: tuple[Dim, ...] = (2, N, M)

SIZES = [(0, 3, 2), (3, 0, 2), (2, 3, 0), (1, 1, 1), (7, 65, 2), (13, 5, 3)]


def product(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> PrimFunc:
    x, y = te.placeholder(a, name="x"), te.placeholder(b, name="y")
    return te.create_prim_func(x, y, matmul(x, y))


def dense(depth: Dim = K, columns: Dim = M) -> PrimFunc:
    """``max(x · w + b, 0)``."""
    x, w = te.placeholder((N, depth), name="x"), te.placeholder((depth, columns), name="w")
    b = te.placeholder((columns,), name="b")
    c = matmul(x, w)
    added = te.compute((N, columns), lambda i, j: c[i, j] + b[j], "added")
    out = te.compute((N, columns), lambda i, j: te.maximum(added[i, j], 0.0), "out")
    return te.create_prim_func(x, w, b, out)


def residual() -> PrimFunc:
    """``gelu(x · w) + r`` over a batch, where the batch and the rows collapse."""
    x, w = te.placeholder((2, N, K), name="x"), te.placeholder((K, M), name="w")
    r = te.placeholder(PAIR, name="r")
    c = matmul(x, w)
    out = te.compute(
        PAIR,
        lambda *i: c[i] * te.erf(c[i]) + r[i],
        "out",
    )
    return te.create_prim_func(x, w, r, out)


def masked() -> PrimFunc:
    """Scores plus a mask that is the same for all heads: batch and rows stay apart."""
    q, k = te.placeholder((2, N, 4), name="q"), te.placeholder((2, 4, M), name="k")
    mask = te.placeholder((N, M), name="mask")
    c = matmul(q, k)
    out = te.compute(PAIR, lambda *i: c[i] * 0.5 + mask[i[1:]], "out")
    return te.create_prim_func(q, k, mask, out)


def product_and_map() -> PrimFunc:
    """Both the product and its exponential are results."""
    x, w = te.placeholder((N, K), name="x"), te.placeholder((K, M), name="w")
    c = matmul(x, w)
    return te.create_prim_func(x, w, c, te.compute((N, M), lambda i, j: te.exp(c[i, j]), "e"))


def transposed_left() -> PrimFunc:
    x, w = te.placeholder((K, N), name="x"), te.placeholder((K, M), name="w")
    k = te.reduce_axis(K)
    return te.create_prim_func(
        x, w, te.compute((N, M), lambda i, j: te.sum(w[k, j] * x[k, i], k), "out")
    )


def product_of_costly() -> PrimFunc:
    """``eˣ · w``: the exponentials are computed once, before."""
    x, w = te.placeholder((N, K), name="x"), te.placeholder((K, M), name="w")
    e = te.compute((N, K), lambda i, j: te.exp(x[i, j]), "e")
    return te.create_prim_func(x, w, matmul(e, w))


FUNCTIONS = {
    "matrix": product((N, K), (K, M)),
    "wide": product((N, K), (K, 130)),
    "batched": product((3, N, K), (3, K, M)),
    "broadcast batch": product((3, N, K), (K, M)),
    "row": product((K,), (K, M)),
    "one row": product((1, K), (K, M)),
    "batch of rows": product((N, 1, K), (N, K, M)),
    "dense": dense(),
    "residual": residual(),
    "masked": masked(),
    "product and map": product_and_map(),
    "transposed left": transposed_left(),
    "product of costly": product_of_costly(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("n", "m", "k"), SIZES)
def test_the_schedule_computes_the_same(name: str, n: int, m: int, k: int) -> None:
    assert_same_results(FUNCTIONS[name], n=n, m=m, k=k)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_anchor_is_matmul(name: str) -> None:
    assert schedule(FUNCTIONS[name]).attrs["schedule"] == "matmul"


def test_a_product_alone_goes_to_its_result() -> None:
    scheduled = schedule(product((N, 32), (32, 100)))

    (call,) = [s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]
    assert call.name == "gemm_tile"
    assert call.buffers[2][0] is scheduled.outputs[0]
    assert loops_of(scheduled) == [("parallel", "(n + 95) // 96"), ("parallel", "2")]


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize(("n", "m", "k"), SIZES)
def test_products_of_other_dtypes_run_by_tiles(dtype: str, n: int, m: int, k: int) -> None:
    x, w = te.placeholder((N, K), dtype, "x"), te.placeholder((K, M), dtype, "w")
    c = matmul(x, w)
    function = te.create_prim_func(x, w, te.compute((N, M), lambda i, j: c[i, j] + c[i, j], "out"))

    called = {s.name for s in statements(schedule(function).body) if isinstance(s, TensorIntrinsic)}
    assert called == {f"gemm_tile_{dtype}"}
    assert_same_results(function, n=n, m=m, k=k)


def test_an_epilogue_reads_the_block_in_place() -> None:
    scheduled = schedule(dense(32, 100))

    (block,) = [s for s in statements(scheduled.body) if isinstance(s, TirBlock)]
    assert [(b.shape, b.scope) for b in block.allocs] == [((96, 64), "local")]
    assert scheduled.allocs == ()


def test_a_batch_collapses_into_the_rows_where_the_epilogue_allows_it() -> None:
    alone = schedule(product((3, N, 32), (32, 64)))

    assert loops_of(alone) == [("parallel", "(n * 3 + 95) // 96")]
    assert ("parallel", "(n * 2 + 95) // 96") in loops_of(schedule(residual()))
    assert loops_of(schedule(masked()))[0] == ("parallel", "2")


def test_blocks_of_known_size_need_no_minimum() -> None:
    scheduled = schedule(product((180, 32), (32, 128)))

    (call,) = [s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]
    *strides, rows, columns, depth, _, _ = [getattr(s, "value", None) for s in call.scalars]
    assert loops_of(scheduled) == [("parallel", "2"), ("parallel", "2")]
    assert (strides, rows, columns, depth) == ([32, 1, 128, 16, 128], 90, 64, 32)


def test_known_rows_are_cut_evenly_into_whole_tiles() -> None:
    scheduled = schedule(product((100, 32), (32, 64)))

    (call,) = [s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]
    assert call.scalars[5] == binary("min", 54, 100 - _loop_of(scheduled).var * 54)


def _loop_of(function: PrimFunc) -> For:
    (loop,) = [s for s in statements(function.body) if isinstance(s, For)]
    return loop


def test_a_product_with_a_column_runs_by_rows() -> None:
    function = product((N, K), (K,))

    assert schedule(function).attrs["schedule"] == "rows"
    assert_same_results(function, n=3, k=7)


def transposed_right(rows: Dim, depth: Dim, columns: Dim = M) -> PrimFunc:
    """``relu(x · wᵀ)``."""
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((columns, depth), name="w")
    k = te.reduce_axis(depth)
    c = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[j, k], k), "c")
    out = te.compute((rows, columns), lambda i, j: te.maximum(c[i, j], 0.0), "out")
    return te.create_prim_func(x, w, out)


@pytest.mark.parametrize(("n", "m", "k"), [(0, 3, 2), (2, 3, 0), (1, 1, 1), (7, 65, 2), (13, 5, 3)])
def test_a_transposed_right_operand_is_packed(n: int, m: int, k: int) -> None:
    function = transposed_right(N, K)

    scheduled = schedule(function)

    assert scheduled.attrs["schedule"] == "matmul"
    columns = strip(scheduled_machine())
    assert panels_of(scheduled) == [("panel0", (64 // columns, K, columns))]
    assert_same_results(function, n=n, m=m, k=k)


def test_few_rows_of_a_transposed_right_operand_are_not_worth_the_copy() -> None:
    function = transposed_right(4, K)

    assert schedule(function).attrs["schedule"] == "rows"
    assert_same_results(function, m=4, k=7)


def test_a_depth_of_several_panels_is_added_up() -> None:
    assert_same_results(transposed_right(9, 1030), m=2)
    assert_same_results(product((9, 1030), (1030, M)), m=2)


def test_a_large_right_operand_is_packed_where_the_rows_are_enough() -> None:
    def has_panel(rows: Dim, depth: Dim, columns: Dim) -> bool:
        return bool(panels_of(schedule(product((rows, depth), (depth, columns)))))

    assert has_panel(192, 1024, 1024)
    assert not has_panel(191, 1024, 1024)
    assert not has_panel(192, 512, 1024)
    assert not has_panel(N, 512, 1024)
    assert has_panel(N, 1024, 1024)
    assert has_panel(192, K, M)


def panels_of(function: PrimFunc) -> list[tuple[str, tuple[Dim, ...]]]:
    """The buffers to which operands are copied."""
    blocks = [s for s in statements(function.body) if isinstance(s, TirBlock)]
    return [(b.name, b.shape) for s in blocks for b in s.allocs if b.scope == "global"]


def test_sizes_that_are_not_known_decide_at_run_time() -> None:
    def branches(rows: Dim, depth: Dim, columns: Dim) -> int:
        found = statements(schedule(product((rows, depth), (depth, columns))).body)
        return sum(isinstance(s, IfThenElse) for s in found)

    assert branches(192, 1024, 1024) == 0
    assert branches(N, 64, 64) == 0
    assert branches(N, 512, 512) == 1
    assert branches(N, 1024, 1024) == 2


def test_a_batch_without_elements_is_not_tiled() -> None:
    scheduled = schedule(product((N, 0, 4, 4), (N, 1, 4, 1)))

    assert scheduled.attrs["schedule"] != "matmul"


def test_a_single_row_streams_a_large_matrix() -> None:
    scheduled = schedule(product((1, 1024), (1024, 2050)))

    assert [loop for loop in loops_of(scheduled) if loop[0] != "vectorized"] == [
        ("parallel", "3"),
        ("serial", "128"),
    ]
    assert not any(isinstance(s, TensorIntrinsic) for s in statements(scheduled.body))


# --- the machine decides --------------------------------------------------------------------


@pytest.fixture(params=["x86_64:x86-64-v4", "x86_64:x86-64-v3", "generic"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    with scheduling_for(processor(request.param)):
        yield request.param


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_schedule_for_each_machine_computes_the_same(name: str, target: str) -> None:
    assert_same_results(FUNCTIONS[name], n=7, m=83, k=5)


def test_panels_are_as_wide_as_the_micro_kernel_of_the_machine(target: str) -> None:
    copied = schedule(product((200, 800), (800, 1000)))
    shapes = {
        "x86_64:x86-64-v4": (1, 800, 64),
        "x86_64:x86-64-v3": (4, 800, 16),
        "generic": (4, 800, 16),
    }

    assert panels_of(copied) == [("panel0", shapes[target])]
    assert_same_results(transposed_right(9, K), m=70, k=3)


def test_many_narrow_strips_are_copied_by_wide_panels(target: str) -> None:
    columns = 8 * 128 + 40

    function = transposed_right(50, 3, columns)

    strips = {"x86_64:x86-64-v4": (1, 64), "x86_64:x86-64-v3": (8, 16), "generic": (8, 16)}
    count, width = strips[target]
    assert panels_of(schedule(function)) == [("panel0", (count, 3, width))]
    assert_same_results(function)


def test_a_narrow_micro_kernel_needs_copies_sooner() -> None:
    function = product((96, 128), (128, 128))

    assert panels_of(schedule(function)) == []
    with scheduling_for(processor("x86_64:x86-64-v3")):
        assert panels_of(schedule(function)) == [("panel0", (4, 128, 16))]


@pytest.mark.parametrize("name", ["matrix", "dense", "product and map"])
def test_few_rows_stream_a_large_matrix_where_the_micro_kernel_is_narrow(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul_schedule, "LARGEST_BY_BLOCKS", 8)
    few, more = (schedule(product((rows, 9), (9, 70))) for rows in (3, 4))

    assert has_tile(few) == (target == "x86_64:x86-64-v4")
    assert has_tile(more)
    for rows in (0, 1, 3, 4):
        assert_same_results(FUNCTIONS[name], n=rows, m=70, k=9)


def has_tile(function: PrimFunc) -> bool:
    """Whether a micro-kernel is called."""
    return any(isinstance(s, TensorIntrinsic) for s in statements(function.body))
