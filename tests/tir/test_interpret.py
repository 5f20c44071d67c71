"""The reference interpreter of loop functions: every statement and expression, and its checks."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.tir.expr import (
    Binary,
    BinaryKind,
    Buffer,
    BufferLoad,
    Cast,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
    binary,
    from_dim,
)
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    LoopKind,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

n = dims.symbol("n")

F32 = "float32"


def index(value: int) -> Imm:
    return Imm(value, "int64")


def scalar_function(value: TirExpr, *inputs: Buffer) -> PrimFunc:
    """``out[()] = value``."""
    out = Buffer("out", (), value.dtype)
    return PrimFunc((*inputs, out), Store(out, (), value))


def evaluated(kind: BinaryKind, x: Any, y: Any) -> Any:
    dtype = np.asarray(x).dtype.name
    a, b = Buffer("a", (), dtype), Buffer("b", (), dtype)
    prim_func = scalar_function(Binary(kind, BufferLoad(a, ()), BufferLoad(b, ())), a, b)
    return interpret(prim_func, [np.asarray(x), np.asarray(y)])[0][()]


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorized", "unrolled"])
def test_every_kind_of_loop_runs_all_its_iterations(kind: LoopKind) -> None:
    x, out, i = Buffer("x", (n,), F32), Buffer("out", (n,), F32), TirVar("i")
    body = For(i, from_dim(n), kind, Store(out, (i,), x[i] * 2))
    given = np.arange(5, dtype=F32)

    result = interpret(PrimFunc((x, out), body), [given])

    np.testing.assert_array_equal(result[0], given * 2)


def test_outputs_that_are_given_are_written_in_place() -> None:
    x, out, i = Buffer("x", (n,), F32), Buffer("out", (n,), F32), TirVar("i")
    prim_func = PrimFunc((x, out), For(i, from_dim(n), "serial", Store(out, (i,), x[i] + 1)))
    given = np.zeros(3, F32)

    interpret(prim_func, [given, given])

    assert given.tolist() == [1, 1, 1]


def sum_of_rows(extent: TirExpr) -> PrimFunc:
    """``out[i] = Σₖ x[i, k]`` in unscheduled form."""
    i, k, v, w = TirVar("i"), TirVar("k"), TirVar("v"), TirVar("w")
    x, out = Buffer("x", (2, n), F32), Buffer("out", (2,), F32)
    axes = (BlockAxis(v, index(2), "spatial", i), BlockAxis(w, extent, "reduce", k))
    update = Store(out, (v,), out[v] + x[v, w])
    block = TirBlock("sum", axes, update, init=Store(out, (v,), Imm(0.0, F32)))
    loops = For(i, index(2), "serial", For(k, extent, "serial", block))
    return PrimFunc((x, out), loops)


@pytest.mark.parametrize("extent", [0, 1, 3])
def test_init_runs_before_the_first_step_and_also_over_nothing(extent: int) -> None:
    x = np.arange(2 * extent, dtype=F32).reshape(2, extent)

    result = interpret(sum_of_rows(from_dim(n)), [x])

    np.testing.assert_array_equal(result[0], x.sum(axis=1))


def test_init_runs_over_nothing_where_the_reduce_loop_is_outside() -> None:
    i, k, v, w = TirVar("i"), TirVar("k"), TirVar("v"), TirVar("w")
    out = Buffer("out", (2,), F32)
    axes = (BlockAxis(v, index(2), "spatial", i), BlockAxis(w, index(0), "reduce", k))
    block = TirBlock("sum", axes, Store(out, (v,), Imm(5.0, F32)), Store(out, (v,), Imm(0.0, F32)))
    body = For(k, index(0), "serial", Seq((For(i, index(2), "serial", block),)))

    result = interpret(PrimFunc((out,), body), [])

    assert result[0].tolist() == [0, 0]


def test_a_block_without_reduce_axes_runs_its_init_each_time_and_lets_its_axes() -> None:
    i, v = TirVar("i"), TirVar("v")
    out = Buffer("out", (3,), "int64")
    axes = (BlockAxis(v, index(3), "spatial", index(2) - i),)
    block = TirBlock("b", axes, Store(out, (v,), out[v] + i), Store(out, (v,), index(10)))

    result = interpret(PrimFunc((out,), For(i, index(3), "serial", block)), [])

    assert result[0].tolist() == [12, 11, 10]


def test_a_branch_runs_one_side() -> None:
    out, i = Buffer("out", (4,), F32), TirVar("i")
    one, two = Store(out, (i,), Imm(1.0, F32)), Store(out, (i,), Imm(2.0, F32))
    body: Stmt = For(i, index(4), "serial", Seq((two, IfThenElse(i < 1, one))))
    both = For(i, index(4), "serial", IfThenElse(i < 2, one, two))

    first = interpret(PrimFunc((out,), body), [])[0]
    second = interpret(PrimFunc((out,), both), [])[0]

    assert first.tolist() == [1, 2, 2, 2]
    assert second.tolist() == [1, 1, 2, 2]


def test_intermediate_buffers_begin_with_no_usable_value() -> None:
    local = Buffer("local", (2,), F32, "local")
    root, out = Buffer("root", (2,), F32), Buffer("out", (2,), F32)
    add = Store(out, (index(0),), local[index(0)])
    body = TirBlock("b", (), Seq((add, Store(out, (index(1),), root[index(1)]))), allocs=(local,))

    result = interpret(PrimFunc((out,), body, allocs=(root,)), [])

    assert np.isnan(result[0]).all()


def test_a_tensor_intrinsic_gets_the_addresses_of_elements_and_scalars() -> None:
    x, out = Buffer("x", (2, 3), F32), Buffer("out", (2, 3), F32)
    at = (index(1), index(0))
    body = TensorIntrinsic("copy_row", ((out, at), (x, at)), (index(2),))

    def copy_row(to: np.ndarray[Any, Any], source: np.ndarray[Any, Any], count: int) -> None:
        to[:count] = source[:count]

    given = np.arange(6, dtype=F32).reshape(2, 3)
    written = np.zeros((2, 3), F32)

    interpret(PrimFunc((x, out), body), [given, written], intrinsics={"copy_row": copy_row})

    assert written.tolist() == [[0, 0, 0], [3, 4, 0]]


def test_a_symbol_that_no_buffer_binds_is_a_scalar() -> None:
    out, i = Buffer("out", (n * 2,), "int64"), TirVar("i")
    body = For(i, from_dim(n * 2), "serial", Store(out, (i,), from_dim(n)))

    result = interpret(PrimFunc((out,), body, scalars=("n",)), [], {"n": 2})

    assert result[0].tolist() == [2, 2, 2, 2]


ARITHMETIC: list[tuple[BinaryKind, Any, Any, Any]] = [
    ("+", np.float32(0.1), np.float32(0.2), np.float32(0.1) + np.float32(0.2)),
    ("-", np.int32(3), np.int32(5), np.int32(-2)),
    ("*", np.uint8(20), np.uint8(20), np.uint8(400 % 256)),
    ("/", np.float32(1), np.float32(0), np.float32(np.inf)),
    ("//", np.int32(-7), np.int32(2), np.int32(-4)),
    ("%", np.int32(-7), np.int32(2), np.int32(1)),
    ("min", np.float32(np.nan), np.float32(1), np.float32(np.nan)),
    ("max", np.float32(1), np.float32(np.nan), np.float32(np.nan)),
    ("<", np.int32(1), np.int32(2), np.bool_(True)),
    ("<=", np.float64(1), np.float64(1), np.bool_(True)),
    (">", np.float64(np.nan), np.float64(1), np.bool_(False)),
    (">=", np.int32(1), np.int32(2), np.bool_(False)),
    ("==", np.int32(1), np.int32(1), np.bool_(True)),
    ("!=", np.float32(np.nan), np.float32(np.nan), np.bool_(True)),
    ("and", np.bool_(True), np.bool_(False), np.bool_(False)),
    ("or", np.bool_(True), np.bool_(False), np.bool_(True)),
]


@pytest.mark.parametrize(("kind", "x", "y", "expected"), ARITHMETIC)
def test_arithmetic_is_that_of_the_dtype(kind: BinaryKind, x: Any, y: Any, expected: Any) -> None:
    actual = evaluated(kind, x, y)

    assert actual.dtype == expected.dtype
    np.testing.assert_equal(actual, expected)


FUNCTIONS: dict[str, Any] = {
    "exp": np.exp(np.float64(0.5)),
    "log": np.log(0.5),
    "sqrt": np.sqrt(0.5),
    "rsqrt": 1 / np.sqrt(0.5),
    "tanh": np.tanh(0.5),
    "erf": 0.5204998778130465,
    "sigmoid": 1 / (1 + np.exp(-0.5)),
    "abs": 0.5,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "expected"), FUNCTIONS.items())
def test_a_scalar_function_is_of_the_operand_s_dtype(name: str, expected: Any, dtype: str) -> None:
    x = Buffer("x", (), dtype)

    actual = interpret(scalar_function(Intrinsic(name, (x[()],)), x), [np.array(0.5, dtype)])[0]

    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_functions_of_several_operands() -> None:
    x, y, z = (Imm(v, F32) for v in (3.0, 2.0, 1.0))

    power = interpret(scalar_function(Intrinsic("pow", (x, y))), [])[0]
    fma = interpret(scalar_function(Intrinsic("fma", (x, y, z))), [])[0]

    assert (power[()], fma[()]) == (9, 7)


def test_casts_selections_and_negations() -> None:
    truncated = Cast("int32", Imm(-1.75, F32))
    chosen = Select(Not(binary("==", truncated, -1)), Imm(1, "int8"), Imm(2, "int8"))

    first = interpret(scalar_function(truncated), [])[0]
    second = interpret(scalar_function(chosen), [])[0]

    assert first.tolist() == -1
    assert second.tolist() == 2


@pytest.mark.parametrize("place", [-1, 3])
def test_an_index_outside_of_its_buffer_is_named(place: int) -> None:
    x, out = Buffer("x", (3,), F32), Buffer("out", (), F32)
    body = Store(out, (), x[index(place)])

    with pytest.raises(IndexError) as raised:
        interpret(PrimFunc((x, out), body), [np.zeros(3, F32)])

    assert str(raised.value) == f"x[{place}] is outside of (3,)"


def test_both_sides_of_a_selection_must_be_inside() -> None:
    x, out = Buffer("x", (3,), F32), Buffer("out", (), F32)
    chosen = Select(Imm(1, "bool"), x[index(0)], x[index(7)])

    with pytest.raises(IndexError) as raised:
        interpret(PrimFunc((x, out), Store(out, (), chosen)), [np.zeros(3, F32)])

    assert str(raised.value) == "x[7] is outside of (3,)"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.zeros((2, 1), F32)] * 3, "got 3 arrays, needs 2: x, out"),
        ([np.zeros((3, 1), F32)], "x is float32 (3, 1), needs float32 (2, 1)"),
        ([np.zeros(2, F32)], "no value for the symbol n: pass scalars"),
        ([np.zeros((2, 1))], "x is float64 (2, 1), needs float32 (2, 1)"),
        ([np.zeros((2, 4), F32)[:, ::2]], "x is not contiguous"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: list[Any], message: str) -> None:
    with pytest.raises(RunError) as raised:
        interpret(sum_of_rows(from_dim(n)), arrays)

    assert str(raised.value) == message
