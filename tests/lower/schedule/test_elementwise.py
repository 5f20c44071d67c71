"""Elementwise chains, copies and permutations run as few, contiguous loops."""

import pytest

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.legalize.manipulate import reshape
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.support.scheduled import K, M, N, assert_same_results, loops_of

CUBE: tuple[Dim, ...] = (N, M, 3)

IN_CHUNKS = [("parallel", "(m * n + 16383) // 16384"), ("vectorized", "...")]

SIZES = [(0, 3), (3, 0), (1, 1), (2, 7), (16, 17), (17, 5), (1, 65)]


def chain() -> PrimFunc:
    """``exp(x) · w + x``, of three tensors."""
    x, w = te.placeholder((N, M), name="x"), te.placeholder((N, M), name="w")
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j]), "e")
    p = te.compute((N, M), lambda i, j: e[i, j] * w[i, j], "p")
    return te.create_prim_func(x, w, te.compute((N, M), lambda i, j: p[i, j] + x[i, j], "out"))


def with_bias() -> PrimFunc:
    x, b = te.placeholder((N, M), name="x"), te.placeholder((M,), name="b")
    return te.create_prim_func(x, b, te.compute((N, M), lambda i, j: x[i, j] + b[j], "out"))


def with_inner_bias() -> PrimFunc:
    x, b = te.placeholder(CUBE, name="x"), te.placeholder((M, 3), name="b")
    out = te.compute(CUBE, lambda *i: x[i] * b[i[1:]], "out")
    return te.create_prim_func(x, b, out)


def with_column() -> PrimFunc:
    x, b = te.placeholder(CUBE, name="x"), te.placeholder((N, 1, 1), name="b")
    out = te.compute(CUBE, lambda *i: x[i] * b[i[0], 0, 0], "out")
    return te.create_prim_func(x, b, out)


def two_results() -> PrimFunc:
    x = te.placeholder((N, M), name="x")
    e = te.compute((N, M), lambda i, j: te.exp(x[i, j]), "e")
    twice = te.compute((N, M), lambda i, j: e[i, j] * 2.0, "twice")
    return te.create_prim_func(x, e, twice)


def costly_row() -> PrimFunc:
    """``x + exp(b)``, where each exponential is used in every row."""
    x, b = te.placeholder((N, M), name="x"), te.placeholder((M,), name="b")
    e = te.compute((M,), lambda j: te.exp(b[j]), "e")
    return te.create_prim_func(x, b, te.compute((N, M), lambda i, j: x[i, j] + e[j], "out"))


def position() -> PrimFunc:
    """Each element plus its row number: the value uses an index."""
    x = te.placeholder((N, M), name="x")
    out = te.compute((N, M), lambda i, j: x[i, j] + te.cast(i, "float32"), "out")
    return te.create_prim_func(x, out)


def scalar() -> PrimFunc:
    x = te.placeholder((), name="x")
    return te.create_prim_func(x, te.compute((), lambda: x[()] + 1.0, "out"))


def permuted(axes: tuple[int, ...]) -> PrimFunc:
    shape = (*CUBE, 2)[: len(axes)]
    x = te.placeholder(shape, name="x")
    out = te.compute(
        [shape[a] for a in axes],
        lambda *i: x[tuple(i[axes.index(k)] for k in range(len(axes)))],
        "out",
    )
    return te.create_prim_func(x, out)


def viewed(source: tuple[Dim, ...], target: tuple[Dim, ...]) -> PrimFunc:
    x = te.placeholder(source, name="x")
    return te.create_prim_func(x, reshape(x, target))


FUNCTIONS = {
    "chain": chain(),
    "bias": with_bias(),
    "inner bias": with_inner_bias(),
    "column": with_column(),
    "two results": two_results(),
    "costly row": costly_row(),
    "position": position(),
    "transpose": permuted((1, 0)),
    "last axis kept": permuted((1, 0, 2)),
    "last two axes kept": permuted((1, 0, 2, 3)),
    "rotation": permuted((2, 0, 1)),
    "merged": viewed((N, 4, M), (N, 4 * M)),
    "split": viewed((N * M,), (N, M)),
    "regrouped": viewed((N * M, 2), (N, 2 * M)),
    "three to one": viewed((N, M, 4), (N * M * 4,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_schedule_computes_the_same(name: str, n: int, m: int) -> None:
    assert_same_results(FUNCTIONS[name], n=n, m=m)


def test_a_scalar_needs_no_loop() -> None:
    assert_same_results(scalar())
    assert loops_of(schedule(scalar())) == []


def test_axes_collapse_where_every_access_is_linear() -> None:
    assert loops_of(schedule(chain())) == IN_CHUNKS
    assert loops_of(schedule(with_inner_bias())) == [("parallel", "n"), ("vectorized", "m * 3")]
    assert loops_of(schedule(with_column())) == [("parallel", "n"), ("vectorized", "m * 3")]


def test_axes_stay_apart_where_a_broadcast_or_an_index_needs_them() -> None:
    for function in (with_bias(), position()):
        assert loops_of(schedule(function)) == [("parallel", "n"), ("vectorized", "m")]


def test_results_of_one_shape_share_a_nest() -> None:
    assert loops_of(schedule(two_results())) == IN_CHUNKS


@pytest.mark.parametrize(
    ("size", "loops"),
    [
        (16384, [("vectorized", "16384")]),
        (40960, [("parallel", "4"), ("vectorized", "10240")]),
        (16385, [("parallel", "2"), ("vectorized", "...")]),
    ],
)
def test_a_long_loop_is_cut_into_even_chunks_if_it_can_be(
    size: int, loops: list[tuple[str, str]]
) -> None:
    x = te.placeholder((size,), name="x")

    scheduled = schedule(te.create_prim_func(x, te.compute((size,), lambda i: x[i] + 1.0, "out")))

    assert loops_of(scheduled) == loops


def test_what_passes_once_through_the_caches_is_named() -> None:
    assert schedule(chain()).attrs["streamed"] == (0, 1, 2)
    assert schedule(with_bias()).attrs["streamed"] == (2,)  # too little work to read ahead
    assert schedule(two_results()).attrs["streamed"] == (0, 2)  # the first result is read again
    small = te.placeholder((1024,), name="x")
    out = te.compute((1024,), lambda i: te.exp(small[i]), "out")
    assert "streamed" not in schedule(te.create_prim_func(small, out)).attrs


def test_what_is_costly_and_used_in_every_row_is_computed_once() -> None:
    scheduled = schedule(costly_row())

    assert loops_of(scheduled) == [
        *[("parallel", "(m + 16383) // 16384"), ("vectorized", "...")],
        *[("parallel", "n"), ("vectorized", "m")],
    ]
    assert [b.name for b in scheduled.allocs] == ["e"]


def test_a_view_is_one_flat_copy_without_division() -> None:
    for name in ("merged", "split", "regrouped", "three to one"):
        scheduled = schedule(FUNCTIONS[name])

        assert scheduled.attrs["schedule"] == "view"
        assert [kind for kind, _ in loops_of(scheduled)] == ["parallel", "vectorized"]


def test_a_transpose_runs_in_blocks_by_a_micro_kernel() -> None:
    scheduled = schedule(permuted((1, 0)))

    assert loops_of(scheduled) == [("parallel", "(n + 255) // 256"), ("parallel", "(m + 15) // 16")]
    calls = [s for s in statements(scheduled.body) if isinstance(s, TensorIntrinsic)]
    assert [call.name for call in calls] == ["transpose_32"]


def test_a_permutation_that_keeps_the_last_axis_runs_along_it() -> None:
    scheduled = schedule(permuted((1, 0, 2)))

    assert scheduled.attrs["schedule"] == "movement"
    assert loops_of(scheduled) == [("parallel", "m"), ("parallel", "n"), ("vectorized", "3")]


def test_axes_that_a_permutation_keeps_together_are_one_loop() -> None:
    loops = loops_of(schedule(permuted((1, 0, 2, 3))))

    assert loops == [("parallel", "m"), ("parallel", "n"), ("vectorized", "6")]


def test_a_scheduled_function_is_not_scheduled_again() -> None:
    scheduled = schedule(chain())

    assert schedule(scheduled) is scheduled


def test_symbols_keep_their_order_as_arguments() -> None:
    function = viewed((K * M, N), (K, M, N))

    assert schedule(function).symbols == function.symbols
