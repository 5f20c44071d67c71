"""Reductions in vector accumulators, and blocks with an `init`."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.emit.target import Target
from relax_egraph.tir.expr import (
    Binary,
    BinaryKind,
    Buffer,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    TirExpr,
    TirVar,
    binary,
    from_dim,
)
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    LoopKind,
    PrimFunc,
    Stmt,
    Store,
    TirBlock,
    seq,
)
from tests.support.kernels import (
    FLOATS,
    INTEGERS,
    SIZES,
    TARGETS,
    buffer,
    compiled,
    loop,
    m,
    n,
    run,
    sample,
)

i, k = TirVar("i"), TirVar("k")

REDUCE: dict[BinaryKind, Any] = {"+": np.sum, "*": np.prod, "min": np.min, "max": np.max}


def start(kind: BinaryKind, dtype: str) -> Imm:
    """The identity of a combination."""
    if kind in "+*":
        return Imm(0 if kind == "+" else 1, dtype)
    if dtype in FLOATS:
        return Imm(float("-inf" if kind == "max" else "inf"), dtype)
    if dtype == "bool":
        return Imm(0 if kind == "max" else 1, dtype)
    limits = np.iinfo(dtype)
    return Imm(int(limits.min if kind == "max" else limits.max), dtype)


def rows(kind: BinaryKind, dtype: str) -> PrimFunc:
    """``out[i] = reduce(x[i, :])`` with the init as a statement of its own."""
    x, out = buffer("x", dtype, m, n), buffer("out", dtype, m)
    update = Store(out, (i,), Binary(kind, out[i], x[i, k]))
    body = seq(Store(out, (i,), start(kind, dtype)), loop(k, n, update))
    return PrimFunc((x, out), loop(i, m, body, "serial"))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("size", [*SIZES, 256])
@pytest.mark.parametrize("kind", REDUCE)
def test_rows_of_any_length_are_reduced(kind: BinaryKind, size: int, target: Target) -> None:
    x = 1 + sample((3, size), "float32") * np.float32(0.05)
    empty = np.float32(start(kind, "float32").value)

    result = run(rows(kind, "float32"), [x], (3,), target=target, m=3, n=size)

    expected = REDUCE[kind](x.astype(np.float64), axis=1) if size else np.full(3, empty)
    np.testing.assert_allclose(result, expected, rtol=2e-4)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", [*INTEGERS, "float64"])
@pytest.mark.parametrize("kind", REDUCE)
def test_every_dtype_is_reduced(kind: BinaryKind, dtype: str, target: Target) -> None:
    x = sample((2, 333), dtype)

    result = run(rows(kind, dtype), [x], (2,), target=target, m=2, n=333)

    of_integers = {"dtype": dtype} if kind in "+*" else {}
    expected = REDUCE[kind](x, axis=1, **of_integers)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_any_and_all_are_extrema_of_bools(kind: BinaryKind, size: int) -> None:
    x = np.stack([np.zeros(size, bool), np.ones(size, bool), np.arange(size) == size // 2])

    result = run(rows(kind, "bool"), [x], (3,), m=3, n=size)

    np.testing.assert_array_equal(result, REDUCE[kind](x, axis=1))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("place", [0, 17, 63, 64, 99])
@pytest.mark.parametrize("kind", ["max", "min", "+"])
def test_a_nan_anywhere_is_passed_on(kind: BinaryKind, place: int, target: Target) -> None:
    x = sample((1, 100), "float32")
    x[0, place] = np.nan

    result = run(rows(kind, "float32"), [x], (1,), target=target, m=1, n=100)

    assert np.isnan(result[0])


@pytest.mark.parametrize("extent", [1, 7, 16, 40, 64, 100, 5000])
def test_constant_extents_are_reduced(extent: int) -> None:
    x, out = buffer("x", "float32", extent), buffer("out", "float32", 1)
    zero = Imm(0, "int64")
    update = Store(out, (zero,), out[0] + Intrinsic("exp", (x[k],)))
    function = PrimFunc(
        (x, out), seq(Store(out, (zero,), Imm(0.0, "float32")), loop(k, extent, update))
    )
    given = sample((extent,), "float32")

    result = run(function, [given], (1,))

    np.testing.assert_allclose(result[0], np.exp(given.astype(np.float64)).sum(), rtol=1e-5)


@pytest.mark.parametrize("term", ["fma", "product"])
@pytest.mark.parametrize("size", SIZES)
def test_a_dot_product_is_accumulated(term: str, size: int) -> None:
    x, y, out = buffer("x", "float32", n), buffer("y", "float32", n), buffer("out", "float32", 1)
    value = Intrinsic("fma", (x[k], y[k], out[0])) if term == "fma" else out[0] + x[k] * y[k]
    zero = Imm(0, "int64")
    body = seq(Store(out, (zero,), Imm(1.0, "float32")), loop(k, n, Store(out, (zero,), value)))
    a, b = sample((size,), "float32"), sample((size,), "float32", 1)

    result = run(PrimFunc((x, y, out), body), [a, b], (1,), n=size)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(result[0], 1 + exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
def test_two_reductions_share_a_loop_with_a_map(target: Target) -> None:
    x = buffer("x", "float32", n)
    total, top, out = (
        buffer("total", "float32", 1),
        buffer("top", "float32", 1),
        buffer("out", "float32", n),
    )
    zero = Imm(0, "int64")
    body = seq(
        Store(total, (zero,), total[0] + x[k]),
        Store(top, (zero,), binary("max", top[0], x[k])),
        Store(out, (k,), x[k] * 2.0),
    )
    kernel = compiled(PrimFunc((x, total, top, out), loop(k, n, body), num_outputs=3), target)
    given = sample((123,), "float32")
    sums, tops, doubled = np.zeros(1, np.float32), np.zeros(1, np.float32), np.empty_like(given)

    kernel(given, sums, tops, doubled, 123)

    np.testing.assert_allclose(sums[0], given.sum(), rtol=1e-4)
    assert tops[0] == given.max()
    np.testing.assert_array_equal(doubled, given * 2)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
def test_a_branch_decides_what_is_added(target: Target) -> None:
    x, out = buffer("x", "int32", n), buffer("out", "int32", 1)
    zero = Imm(0, "int64")
    add = Store(out, (zero,), out[0] + x[k])
    body = IfThenElse(binary(">", x[k], 0), add)
    kernel = compiled(PrimFunc((x, out), loop(k, n, body)), target)
    given, result = np.arange(-50, 51, dtype=np.int32), np.array([5], np.int32)

    kernel(given, result, given.size)

    assert result[0] == 5 + 50 * 51 // 2


def test_a_running_sum_is_no_reduction() -> None:
    x, out = buffer("x", "int64", n), buffer("out", "int64", n)
    total = buffer("total", "int64", 1)
    zero = Imm(0, "int64")
    body = seq(Store(total, (zero,), total[0] + x[k]), Store(out, (k,), total[0]))
    kernel = compiled(PrimFunc((x, total, out), loop(k, n, body), num_outputs=2))
    given, sums, result = np.arange(40), np.zeros(1, np.int64), np.zeros(40, np.int64)

    kernel(given, sums, result, 40)

    np.testing.assert_array_equal(result, given.cumsum())


def test_a_histogram_counts_every_turn() -> None:
    x, out = buffer("x", "int64", n), buffer("out", "int64", 4)
    body = Store(out, (x[k],), out[x[k]] + 1)
    kernel = compiled(PrimFunc((x, out), loop(k, n, body)))
    given, counts = np.arange(100) % 3, np.zeros(4, np.int64)

    kernel(given, counts, 100)

    assert counts.tolist() == [34, 33, 33, 0]


def test_the_last_turn_decides_what_is_stored_in_one_place() -> None:
    x, out = buffer("x", "float32", n), buffer("out", "float32", 1)
    kernel = compiled(PrimFunc((x, out), loop(k, n, Store(out, (Imm(0, "int64"),), x[k]))))
    given, result = sample((30,), "float32"), np.zeros(1, np.float32)

    kernel(given, result, 30)

    assert result[0] == given[-1]


# --- blocks with an init ----------------------------------------------------------------


def block_of(x: Buffer, out: Buffer, row: TirExpr, step: TirExpr) -> TirBlock:
    """``out[r] = Σ x[r, s]`` with its init inside."""
    r, s = TirVar("r"), TirVar("s")
    axes = (
        BlockAxis(r, DimSymbol("m"), "spatial", row),
        BlockAxis(s, DimSymbol("n"), "reduce", step),
    )
    init = Store(out, (r,), Imm(0.0, "float32"))
    return TirBlock("sum", axes, Store(out, (r,), out[r] + x[r, s]), init)


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
def test_the_init_of_a_block_runs_once(order: str, kind: LoopKind) -> None:
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", m)
    block: Stmt = block_of(x, out, i, k)
    inner, outer = ((k, n), (i, m)) if order == "rows" else ((i, m), (k, n))
    body = loop(outer[0], outer[1], loop(inner[0], inner[1], block, kind), "serial")
    given = sample((37, 53), "float32")

    result = run(PrimFunc((x, out), body), [given], (37,), m=37, n=53)

    np.testing.assert_allclose(result, given.sum(axis=1), rtol=1e-4, atol=1e-5)


def test_the_init_of_a_tiled_block_runs_in_the_first_tile() -> None:
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", m)
    tile = TirVar("tile")
    inner = loop(k, 8, block_of(x, out, i, tile * 8 + k))
    tiles = For(tile, DimSymbol("n") // 8, "serial", inner)
    given = sample((3, 40), "float32")

    result = run(PrimFunc((x, out), loop(i, m, tiles, "serial")), [given], (3,), m=3, n=40)

    np.testing.assert_allclose(result, given.sum(axis=1), rtol=1e-4, atol=1e-5)


def test_an_empty_reduction_in_one_loop_is_its_init() -> None:
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", m)
    body = loop(i, m, loop(k, n, block_of(x, out, i, k)), "serial")

    result = run(PrimFunc((x, out), body), [np.zeros((4, 0), np.float32)], (4,), m=4, n=0)

    assert result.tolist() == [0, 0, 0, 0]


def test_rows_are_normalised_with_local_scalars() -> None:
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", m, n)
    top, total = Buffer("top", (1,), "float32", "local"), Buffer("total", (1,), "float32", "local")
    zero = Imm(0, "int64")
    body = TirBlock(
        "row",
        (),
        seq(
            Store(top, (zero,), Imm(float("-inf"), "float32")),
            loop(k, n, Store(top, (zero,), binary("max", top[0], x[i, k]))),
            loop(k, n, Store(out, (i, k), Intrinsic("exp", (x[i, k] - top[0],)))),
            Store(total, (zero,), Imm(0.0, "float32")),
            loop(k, n, Store(total, (zero,), total[0] + out[i, k])),
            loop(k, n, Store(out, (i, k), out[i, k] / total[0])),
        ),
        allocs=(top, total),
    )
    given = sample((5, 77), "float32")

    result = run(PrimFunc((x, out), loop(i, m, body, "parallel")), [given], (5, 77), m=5, n=77)

    powers = np.exp(given - given.max(axis=1, keepdims=True))
    np.testing.assert_allclose(result, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_terms_of_another_dtype_are_accumulated() -> None:
    x, out = buffer("x", "bool", n), buffer("out", "int64", 1)
    update = Store(out, (Imm(0, "int64"),), out[0] + Cast("int64", x[k]))
    kernel = compiled(PrimFunc((x, out), loop(k, n, update)))
    given, result = sample((1000,), "bool"), np.zeros(1, np.int64)

    kernel(given, result, 1000)

    assert result[0] == given.sum()


@pytest.mark.parametrize("extent", [0, n])
def test_reductions_over_nothing_are_their_init_in_any_nest(extent: Dim) -> None:
    """``out[r] = Σ x[r, s, t]`` where the outer of two reduced axes has no turn."""
    x, out = buffer("x", "float32", m, extent, 3), buffer("out", "float32", m)
    r, s, t, j = TirVar("r"), TirVar("s"), TirVar("t"), TirVar("j")
    axes = (
        BlockAxis(r, DimSymbol("m"), "spatial", i),
        BlockAxis(s, from_dim(extent), "reduce", k),
        BlockAxis(t, Imm(3, "int64"), "reduce", j),
    )
    update = Store(out, (r,), out[r] + x[r, s, t])
    block = TirBlock("sum", axes, update, Store(out, (r,), Imm(5.0, "float32")))
    inner = loop(i, m, loop(j, 3, block, "serial"), "serial")
    function = PrimFunc((x, out), loop(k, extent, inner, "serial"))
    empty = np.zeros((4, 0, 3), np.float32)

    result = run(function, [empty], (4,), m=4, n=0)

    assert result.tolist() == [5, 5, 5, 5]
