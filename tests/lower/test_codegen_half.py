"""The storage types: every number goes both ways, and is rounded only where it is kept."""

from collections.abc import Iterator

import numpy as np
import pytest

from relax_egraph.ir.dtypes import STORED, limits
from relax_egraph.lower.emit.target import Target, host, portable
from relax_egraph.tir.expr import Buffer, Cast, Imm, Intrinsic, TirExpr, TirVar
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.scalar import cast
from relax_egraph.tir.stmt import LoopKind, PrimFunc, Store, seq
from tests.support.kernels import SIZES, Array, buffer, loop, n, run, runs_here, sample

PORTABLE = (portable("avx2", "fma", "f16c"), portable("avx2", "fma"), portable())
TARGETS = [target for target in (host(), *PORTABLE) if runs_here(target)]
"""Processors that convert ``float16``, and those that do not."""

i = TirVar("i")


def converted(source: str, dtype: str, kind: LoopKind = "vectorized") -> PrimFunc:
    x, out = buffer("x", source, n), buffer("out", dtype, n)
    return PrimFunc((x, out), loop(i, n, Store(out, (i,), cast(x[i], dtype)), kind))


def patterns(dtype: str) -> Array:
    """Every value of `dtype`, the NaNs too."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def widened(x: Array) -> Array:
    """`x` as float32; some processors signal NaNs that are converted."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float32)


def neighbours(dtype: str) -> Iterator[Array]:
    """float32 at, beside and between the values of `dtype`; random ones; the ends."""
    values = np.sort(widened(patterns(dtype)))
    values = values[np.isfinite(values)]
    middles = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    for exact in (values, middles):
        yield from (exact, np.nextafter(exact, np.float32(np.inf)))
        yield np.nextafter(exact, np.float32(-np.inf))
    yield np.random.default_rng(0).integers(0, 1 << 32, 100_000, np.uint32).view(np.float32)
    yield np.array([1e-45, -1e-45, 0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    yield np.array([65519.996, 65520, 65536, 3.4028235e38], np.float32)
    yield np.array([0x7F7F7FFF, 0x7F7F8000, 0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)


def assert_bits_are_equal(actual: Array, expected: Array) -> None:
    """The same numbers, zeros of the same sign; any NaN is a NaN."""
    unsigned = f"u{expected.dtype.itemsize}"
    same = (actual.view(unsigned) == expected.view(unsigned)) | (
        np.isnan(actual) & np.isnan(expected)
    )
    wrong = np.flatnonzero(~same)
    assert not wrong.size, (actual[wrong[:5]], expected[wrong[:5]])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.vector_bits}-{len(t.features)}")
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("dtype", STORED)
class TestConversion:
    """From memory to float32 and back, on one lane and on many."""

    def test_every_value_is_read(self, dtype: str, kind: LoopKind, target: Target) -> None:
        x = patterns(dtype)

        result = run(converted(dtype, "float32", kind), [x], x.shape, target=target, n=x.size)

        assert_bits_are_equal(result, widened(x))

    def test_numbers_are_rounded_to_even(self, dtype: str, kind: LoopKind, target: Target) -> None:
        x = np.concatenate([*neighbours(dtype)])

        result = run(converted("float32", dtype, kind), [x], x.shape, target=target, n=x.size)

        with np.errstate(all="ignore"):
            assert_bits_are_equal(result, x.astype(dtype))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.vector_bits}-{len(t.features)}")
@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("size", SIZES)
def test_nothing_beyond_the_end_is_written(size: int, dtype: str, target: Target) -> None:
    x, y = sample((size,), dtype), sample((size,), dtype, 1)
    a, b, out = (buffer(name, dtype, n) for name in "abo")
    function = PrimFunc((a, b, out), loop(i, n, Store(out, (i,), a[i] * b[i] + a[i])))

    result = run(function, [x, y], (size,), target=target, n=size)

    exact = x.astype(np.float32) * y.astype(np.float32) + x.astype(np.float32)
    np.testing.assert_array_equal(result, exact.astype(dtype))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.vector_bits}-{len(t.features)}")
@pytest.mark.parametrize("dtype", STORED)
def test_elements_are_gathered_and_scattered(dtype: str, target: Target) -> None:
    x, at, to, out = (
        buffer("x", dtype, n),
        buffer("at", "int64", n),
        buffer("to", "int64", n),
        buffer("out", dtype, n),
    )
    function = PrimFunc((x, at, to, out), loop(i, n, Store(out, (to[i],), x[at[i]])))
    given = sample((100,), dtype)
    source, target_ = (np.random.default_rng(k).permutation(100) for k in (0, 1))

    result = run(function, [given, source, target_], (100,), target=target, n=100)

    expected = np.empty_like(given)
    expected[target_] = given[source]
    np.testing.assert_array_equal(result, expected)


def in_two_steps(dtype: str, between: TirExpr | None, x: Buffer, out: Buffer) -> PrimFunc:
    """``out = (x + 1) - 1``, with the sum rounded in `between` if that is given."""
    total = x[i] + Imm(1.0, dtype) if between is None else between
    return PrimFunc((x, out), loop(i, n, Store(out, (i,), total - Imm(1.0, dtype))))


@pytest.mark.parametrize("dtype", STORED)
def test_a_chain_is_rounded_at_its_end_and_at_casts(dtype: str) -> None:
    x, out = buffer("x", dtype, n), buffer("out", dtype, n)
    given = (np.arange(1, 65) * float(limits(dtype).eps) / 64).astype(dtype)
    once = in_two_steps(dtype, None, x, out)
    wide = Cast("float32", x[i]) + Imm(1.0, "float32")
    twice = in_two_steps(dtype, Cast(dtype, wide), x, out)

    exact, rounded = (run(f, [given], (64,), n=64) for f in (once, twice))

    np.testing.assert_array_equal(exact, given)
    wide = given.astype(np.float32) + np.float32(1)
    np.testing.assert_array_equal(
        rounded, (wide.astype(dtype).astype(np.float32) - 1).astype(dtype)
    )
    for function, result in ((once, exact), (twice, rounded)):
        np.testing.assert_array_equal(interpret(function, [given])[0], result)


@pytest.mark.parametrize("dtype", STORED)
def test_scratch_memory_rounds(dtype: str) -> None:
    x, out, kept = buffer("x", dtype, n), buffer("out", dtype, n), buffer("kept", dtype, n)
    body = seq(
        loop(i, n, Store(kept, (i,), x[i] * x[i])),
        loop(i, n, Store(out, (i,), Intrinsic("sqrt", (kept[i],)))),
    )
    given = np.abs(sample((50,), dtype))

    result = run(PrimFunc((x, out), body, allocs=(kept,)), [given], (50,), n=50)

    square = (given.astype(np.float32) ** 2).astype(dtype)
    np.testing.assert_array_equal(result, np.sqrt(square.astype(np.float32)).astype(dtype))


@pytest.mark.parametrize("source", ["bool", "int8", "uint8", "int32", "int64", "float64", *STORED])
@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.vector_bits}-{len(t.features)}")
def test_casts_go_through_float32(source: str, dtype: str, kind: LoopKind, target: Target) -> None:
    x = np.asarray(np.abs(sample((130,), "float64")) * 90).astype(source)

    there = run(converted(source, dtype, kind), [x], (130,), target=target, n=130)
    back = run(converted(dtype, source, kind), [there], (130,), target=target, n=130)

    np.testing.assert_array_equal(there, x.astype(np.float32).astype(dtype))
    np.testing.assert_array_equal(back, there.astype(np.float32).astype(source))
