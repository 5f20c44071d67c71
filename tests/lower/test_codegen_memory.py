"""How buffers are read and written: strides, gathers, scratch memory, tensor intrinsics."""

import re

import numpy as np
import pytest

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import compile_kernels, emit_assembly, link, llvm_text
from relax_egraph.tir.expr import Buffer, Cast, DimSymbol, Imm, Scope, TirVar, binary
from relax_egraph.tir.stmt import For, PrimFunc, Store, TensorIntrinsic, TirBlock, seq
from tests.support.guarded import guarded
from tests.support.kernels import SIZES, TARGETS, buffer, compiled, loop, m, n, run, sample

i, j = TirVar("i"), TirVar("j")

DTYPES = ["float32", "float64", "int8", "int64", "bool"]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 16, 37])
def test_columns_are_gathered(size: int, dtype: str, target: Target) -> None:
    x, out = buffer("x", dtype, n, m), buffer("out", dtype, m, n)
    function = PrimFunc((x, out), loop(i, m, loop(j, n, Store(out, (i, j), x[j, i])), "serial"))
    given = sample((size, 5), dtype)

    result = run(function, [given], (5, size), target=target, n=size, m=5)

    np.testing.assert_array_equal(result, given.T)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_are_scattered(dtype: str, target: Target) -> None:
    x, out = buffer("x", dtype, n, m), buffer("out", dtype, m, n)
    function = PrimFunc((x, out), loop(i, n, loop(j, m, Store(out, (j, i), x[i, j])), "serial"))
    given = sample((5, 43), dtype)

    result = run(function, [given], (43, 5), target=target, n=5, m=43)

    np.testing.assert_array_equal(result, given.T)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("times", [2, 3, 4, 16])
@pytest.mark.parametrize("size", [1, 2, 15, 64, 77])
def test_quotients_of_positions_repeat_elements_and_read_no_others(
    size: int, times: int, target: Target
) -> None:
    for dtype in DTYPES:
        x, out = buffer("x", dtype, m), buffer("out", dtype, size)
        value = x[binary("//", i, times)]
        objects = compile_kernels(
            {"f": PrimFunc((x, out), loop(i, size, Store(out, (i,), value)))}, target
        )
        kernel = guarded("f", link(objects)["f"], objects.kernels["f"])
        given, result = sample((-(-size // times),), dtype), np.empty(size, dtype)

        kernel(given, result, given.size)

        np.testing.assert_array_equal(result, np.repeat(given, times)[:size])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("size", [*range(1, 18), 23, 31, 33])
def test_the_last_lanes_are_stored_alone(size: int, target: Target) -> None:
    for dtype in DTYPES:
        for extent in (size, n):
            x, out = buffer("x", dtype, extent), buffer("out", dtype, extent)
            function = PrimFunc((x, out), loop(i, extent, Store(out, (i,), x[i])))
            objects = compile_kernels({"f": function}, target)
            kernel = guarded("f", link(objects)["f"], objects.kernels["f"])
            given, result = sample((size,), dtype), np.empty(size, dtype)

            kernel(given, result, *([size] if function.symbols else []))

            np.testing.assert_array_equal(result, given)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("index_dtype", ["int64", "int32"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_taken_by_index(dtype: str, index_dtype: str, target: Target) -> None:
    x, at, out = buffer("x", dtype, m), buffer("at", index_dtype, n), buffer("out", dtype, n)
    function = PrimFunc((x, at, out), loop(i, n, Store(out, (i,), x[Cast("int64", at[i])])))
    given, places = sample((70,), dtype), np.arange(99)[::-1].astype(index_dtype) % 70

    result = run(function, [given, places], (99,), target=target, m=70, n=99)

    np.testing.assert_array_equal(result, given[places])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [-1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [1, 15, 50, 130])
def test_steps_other_than_one_are_read(size: int, step: int, dtype: str, target: Target) -> None:
    x, out = buffer("x", dtype, m), buffer("out", dtype, n)
    start = DimSymbol("n") - 1 if step < 0 else Imm(0, "int64")
    function = PrimFunc((x, out), loop(i, n, Store(out, (i,), x[start + i * step])))
    given = sample(((size - 1) * abs(step) + 1,), dtype)

    result = run(function, [given], (size,), target=target, m=given.size, n=size)

    np.testing.assert_array_equal(result, given[::step])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("size", [1, 7, 15, 56, 61])
def test_steps_read_no_other_memory(size: int, step: int, dtype: str, target: Target) -> None:
    given, result = sample(((size - 1) * step + 1,), dtype), np.empty(size, dtype)
    x, out = buffer("x", dtype, given.size), buffer("out", dtype, size)
    function = PrimFunc((x, out), loop(i, size, Store(out, (i,), x[i * step])))
    objects = compile_kernels({"f": function}, target)

    guarded("f", link(objects)["f"], objects.kernels["f"])(given, result)

    np.testing.assert_array_equal(result, given[::step])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 15, 50, 130])
def test_elements_are_written_backwards(size: int, dtype: str, target: Target) -> None:
    x, out = buffer("x", dtype, n), buffer("out", dtype, n)
    function = PrimFunc((x, out), loop(i, n, Store(out, (DimSymbol("n") - 1 - i,), x[i])))
    given = sample((size,), dtype)

    result = run(function, [given], (size,), target=target, n=size)

    np.testing.assert_array_equal(result, given[::-1])


def test_flattened_indices_divide_and_take_the_rest() -> None:
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", n * m)
    at = (i // DimSymbol("n"), i % DimSymbol("n"))
    function = PrimFunc((x, out), loop(i, n * m, Store(out, (i,), x[at] * 2.0)))
    given = sample((7, 13), "float32")

    result = run(function, [given], (91,), m=7, n=13)

    np.testing.assert_array_equal(result, given.ravel() * 2)


def test_blocks_cut_by_a_minimum_are_whole() -> None:
    x, out = buffer("x", "float32", n), buffer("out", "float32", n)
    count = binary("min", 16, DimSymbol("n") - i * 16)
    inner = For(j, count, "vectorized", Store(out, (i * 16 + j,), x[i * 16 + j] + 1.0))
    function = PrimFunc((x, out), For(i, (DimSymbol("n") + 15) // 16, "serial", inner))
    for size in SIZES:
        given = sample((size,), "float32")

        result = run(function, [given], (size,), n=size)

        np.testing.assert_array_equal(result, given + 1)


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_scratch_of_constant_and_symbolic_size_is_there(size: int, scope: Scope) -> None:
    x, out = buffer("x", "float32", n), buffer("out", "float32", n)
    row = Buffer("row", (n,), "float32", scope)
    few = Buffer("few", (3, 5), "float64", scope)
    body = seq(
        loop(i, n, Store(row, (i,), x[i] * 2.0)),
        loop(i, 3, loop(j, 5, Store(few, (i, j), Cast("float64", i * 5 + j))), "serial"),
        loop(i, n, Store(out, (i,), row[i] + Cast("float32", few[2, 4]))),
    )
    inside = TirBlock("work", (), body, allocs=(row, few))
    outside = PrimFunc((x, out), body, allocs=(row, few))
    given = sample((size,), "float32")

    for function in (PrimFunc((x, out), inside), outside):
        result = run(function, [given], (size,), n=size)

        np.testing.assert_array_equal(result, given * 2 + 14)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize(("first", "count"), [(0, 5), (3, 14), (0, 21), (2, 19)])
def test_vectors_that_are_not_whole_leave_the_rest_of_scratch(
    first: int, count: int, target: Target
) -> None:
    x, out = buffer("x", "float32", count), buffer("out", "float32", 21)
    row = Buffer("row", (21,), "float32", "local")
    body = seq(
        loop(i, 21, Store(row, (i,), Imm(7.0, "float32"))),
        loop(i, count, Store(row, (i + first,), x[i])),
        loop(i, 21, Store(out, (i,), row[i])),
    )
    function = PrimFunc((x, out), TirBlock("work", (), body, allocs=(row,)))
    given, expected = sample((count,), "float32"), np.full(21, 7, np.float32)
    expected[first : first + count] = given

    result = run(function, [given], (21,), target=target)

    np.testing.assert_array_equal(result, expected)


def test_scratch_is_aligned_to_a_cache_line() -> None:
    out = buffer("out", "int64", 2)
    large, odd = buffer("large", "int8", n), buffer("odd", "int8", n + 1)
    zero = Imm(0, "int64")

    def address(module: Module, target: Target) -> None:
        f = Function(module, "address", (PTR, PTR))
        number = f.emit(I64, f"ptrtoint {f.args[0]} to i64")
        f.store(number, f.args[1])
        f.finish()

    body = seq(
        TensorIntrinsic("address", ((large, (zero,)), (out, (zero,))), ()),
        TensorIntrinsic("address", ((odd, (zero,)), (out, (Imm(1, "int64"),))), ()),
    )
    function = PrimFunc((out,), body, allocs=(large, odd), scalars=("n",))
    kernel = link(compile_kernels({"f": function}, intrinsics={"address": address}))["f"]
    result = np.zeros(2, np.int64)

    kernel(result, 1000)

    assert (result % 64).tolist() == [0, 0]


def add_row(module: Module, target: Target) -> None:
    """``add_row(a, b, count)``: ``b[i] += a[i]``."""
    f = Function(module, "add_row", (PTR, PTR, I64))
    a, b, count = f.args
    with f.loop(0, count) as turns:
        place = f.address(b, turns.index, F32)
        f.store(f.load(place, F32) + f.load(f.address(a, turns.index, F32), F32), place)
    f.finish()


def rows_added() -> PrimFunc:
    x, out = buffer("x", "float32", m, n), buffer("out", "float32", n)
    zero = Imm(0, "int64")
    call = TensorIntrinsic("add_row", ((x, (i, zero)), (out, (zero,))), (DimSymbol("n"),))
    clear = loop(j, n, Store(out, (j,), Imm(0.0, "float32")))
    return PrimFunc((x, out), seq(clear, loop(i, m, call, "serial")))


def test_a_tensor_intrinsic_is_called_with_addresses_and_numbers() -> None:
    kernels = link(
        compile_kernels({"a": rows_added(), "b": rows_added()}, intrinsics={"add_row": add_row})
    )
    given, result = sample((4, 9), "float32"), np.empty(9, np.float32)

    kernels["b"](given, result, 4, 9)

    np.testing.assert_allclose(result, given.sum(axis=0), rtol=1e-5)


def test_a_small_local_buffer_stays_in_registers() -> None:
    """The stack is promoted, so that nothing is left to allocate in the machine code."""
    x, out = buffer("x", "float32", n), buffer("out", "float32", 1)
    total = Buffer("total", (1,), "float32", "local")
    zero = Imm(0, "int64")
    body = seq(
        Store(total, (zero,), Imm(0.0, "float32")),
        loop(i, n, Store(total, (zero,), total[0] + x[i])),
        Store(out, (zero,), total[0]),
    )
    function = PrimFunc((x, out), body, allocs=(total,))

    assembly = emit_assembly(function)

    assert "alloca" in llvm_text(function)
    assert not re.search(r"[(\[]%?r?sp", assembly)


def test_a_loop_without_turns_reads_nothing() -> None:
    """What is the same in all turns is read before the loop, but not if there is no turn."""
    x, out = buffer("x", "float32", m), buffer("out", "float32", n)
    far = DimSymbol("n") * 2**40 - 2**50  # an address that is not mapped, save for n = 1024
    kernel = compiled(PrimFunc((x, out), loop(i, n, Store(out, (i,), x[far]))))
    given, result = np.ones(1, np.float32), np.zeros(1024, np.float32)

    kernel(given, result[:0], 1, 0)
    kernel(given, result, 1, 1024)

    assert result.sum() == 1024
