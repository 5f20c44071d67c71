"""Tensor expressions become loop functions in unscheduled form, and calls of them."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.errors import IllFormed, IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, Expr, ShapeExpr, Tuple, Var, shape
from relax_egraph.ir.struct_info import TensorStructInfo, TupleStructInfo, tensor
from relax_egraph.tir import te
from relax_egraph.tir.analysis import structural_key, tree_size, work
from relax_egraph.tir.expr import (
    Binary,
    BinaryKind,
    Buffer,
    DimSymbol,
    Imm,
    TirExpr,
    TirVar,
    binary,
    from_dim,
)
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.rewrite import loads, stores, substitute, substitute_stmt, variables
from relax_egraph.tir.simplify import simplify_index
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Seq, Store, TirBlock

n, m = dims.symbol("n"), dims.symbol("m")


def row_sums(extent: Dim = n, width: Dim = 4, names: str = "AB") -> PrimFunc:
    a = te.placeholder((extent, width), "float32", names[0])
    k = te.reduce_axis(width)
    b = te.compute((extent,), lambda i: te.sum(te.exp(a[i, k]), k), names[1])
    return te.create_prim_func(a, b)


def test_a_reduction_is_a_nest_around_a_block_with_init() -> None:
    a, b = Buffer("A", (n, 4), "float32"), Buffer("B", (n,), "float32")
    i, k, v, w = TirVar("i0"), TirVar("k0"), TirVar("v_i0"), TirVar("v_k0")
    rows, four = DimSymbol("n"), Imm(4, "int64")
    block = TirBlock(
        "B",
        (BlockAxis(v, rows, "spatial", i), BlockAxis(w, four, "reduce", k)),
        Store(b, (v,), b[v] + te.exp(a[v, w])),
        Store(b, (v,), Imm(0.0, "float32")),
    )
    expected = PrimFunc((a, b), For(i, rows, "serial", For(k, four, "serial", block)))

    actual = row_sums()

    assert structural_key(actual) == structural_key(expected)
    assert [p.name for p in actual.params] == ["A", "B"]
    assert isinstance(actual.body, For)
    assert actual.body.var.name == "i0"


def test_several_tensors_are_a_sequence_with_allocs_in_between() -> None:
    a = te.placeholder((n,), "float32", "A")
    b = te.compute((n,), lambda i: a[i] + 1, "B")
    c = te.compute((n,), lambda i: b[i] * 2, "C")

    prim_func = te.create_prim_func(a, c)

    assert isinstance(prim_func.body, Seq)
    assert [s.buffer.name for s in stores(prim_func.body)] == ["B", "C"]
    assert [b.name for b in prim_func.allocs] == ["B"]
    assert prim_func.num_outputs == 1


def test_a_scalar_tensor_is_a_bare_block() -> None:
    a = te.placeholder((), "float32", "A")

    prim_func = te.create_prim_func(a, te.compute((), lambda: a[()] + 1, "B"))

    assert isinstance(prim_func.body, TirBlock)
    assert interpret(prim_func, [np.array(2, np.float32)])[0][()] == 3


def test_names_of_one_function_are_unique() -> None:
    a = te.placeholder((n,), "float32", "x")
    k0, k1 = te.reduce_axis(2), te.reduce_axis(3)
    b = te.compute((n,), lambda i: te.sum(a[i] * te.cast(k0 + k1, "float32"), [k0, k1]), "x")
    c = te.compute((n,), lambda i: b[i], "n")

    prim_func = te.create_prim_func(a, c)

    assert [p.name for p in prim_func.params] == ["x", "n_1"]
    assert [p.name for p in prim_func.allocs] == ["x_1"]
    assert isinstance(prim_func.body, Seq)
    nest = prim_func.body.body[0]
    names: list[str] = []
    while isinstance(nest, For):
        names.append(nest.var.name)
        nest = nest.body
    assert names == ["i0", "k0", "k0_1"]


def test_symbols_that_no_parameter_binds_are_scalars() -> None:
    a = te.placeholder((n * 2,), "float32", "A")
    b = te.compute((n,), lambda i: a[i * 2] + te.cast(from_dim(m), "float32"), "B")
    flat = te.placeholder((n * m,), "float32", "A")
    c = te.compute((n * m,), lambda i: flat[i], "C")

    first, second = te.create_prim_func(a, b), te.create_prim_func(flat, c)

    assert (first.scalars, first.symbols) == (("m",), ("m", "n"))
    assert second.scalars == ("m", "n")


A = te.placeholder((n,), "float32", "A")
B = te.compute((n,), lambda i: A[i], "B")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([A], "create_prim_func: needs a computed tensor, got only placeholders"),
        ([B, A], "create_prim_func: placeholder A is after an output"),
        ([A, B, B], "create_prim_func: B is repeated"),
        ([B], "create_prim_func: B reads A, which is no parameter"),
    ],
)
def test_parameters_that_make_no_function_are_refused(
    tensors: Sequence[te.Tensor], message: str
) -> None:
    with pytest.raises(IllFormed) as raised:
        te.create_prim_func(*tensors)

    assert str(raised.value) == message


def test_structure_is_compared_up_to_names() -> None:
    same = row_sums(m, 4, "xy")
    wider = row_sums(n, 5)

    assert structural_key(row_sums()) != structural_key(wider)
    assert structural_key(row_sums(n, 4, "AB")) == structural_key(row_sums(m, 4, "AB"))
    assert structural_key(same) != structural_key(row_sums())  # the block is called y


def test_structure_tells_what_is_read() -> None:
    x, y = te.placeholder((n,), "float32", "x"), te.placeholder((n,), "float32", "y")
    there = te.create_prim_func(x, y, te.compute((n,), lambda i: x[i] - y[i], "B"))
    back = te.create_prim_func(x, y, te.compute((n,), lambda i: y[i] - x[i], "B"))
    twice = te.create_prim_func(x, y, te.compute((n,), lambda i: x[i] - x[i], "B"))

    assert len({structural_key(f) for f in (there, back, twice)}) == 3


def added(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: x[i] + y[i], "added")


def halves(x: te.Tensor) -> list[te.Tensor]:
    half = dims.floordiv(x.shape[0], 2)
    return [
        te.compute((half,), lambda i: x[i], "low"),
        te.compute((half,), lambda i: x[i + half], "high"),
    ]


def var(name: str, *extents: Dim) -> Var:
    return Var(name, tensor(tuple(dims.canonical(e) for e in extents), "float32"))


def test_call_te_adds_a_function_and_calls_it() -> None:
    bb = BlockBuilder()
    x, y = var("x", n, 2), var("y", n, 2)

    call = te.call_te(bb, added, x, y)

    function = bb.get()["added"]
    assert isinstance(function, PrimFunc)
    assert [p.name for p in function.params] == ["x", "y", "added"]
    assert call.struct_info == tensor((n, 2), "float32")
    assert operands_of(call) == [x, y]
    assert len(call.args) == 2


def operands_of(call: Call) -> list[Expr]:
    assert isinstance(call.args[1], Tuple)
    return list(call.args[1].fields)


def test_functions_that_are_the_same_but_for_names_are_shared() -> None:
    bb = BlockBuilder()

    first = te.call_te(bb, added, var("x", n, 2), var("y", n, 2))
    second = te.call_te(bb, added, var("z", m, 2), var("z", m, 2))
    third = te.call_te(bb, added, var("x", n, 3), var("y", n, 3))

    assert list(bb.get().functions) == ["added", "added1"]
    assert first.args[0] == second.args[0]
    assert first.args[0] != third.args[0]
    assert second.struct_info == tensor((m, 2), "float32")


def test_call_te_passes_the_symbols_that_no_shape_binds() -> None:
    bb = BlockBuilder()

    call = te.call_te(bb, added, var("x", n + m), var("y", n + m))

    assert call.args[2] == ShapeExpr((m, n))


def test_several_results_are_a_tuple() -> None:
    bb = BlockBuilder()

    call = te.call_te(bb, halves, var("x", n))

    half = tensor((dims.floordiv(n, 2),), "float32")
    assert call.struct_info == TupleStructInfo((half, half))


def test_a_result_that_is_an_operand_is_copied() -> None:
    def both(x: te.Tensor) -> list[te.Tensor]:
        return [x, x]

    bb = BlockBuilder()

    te.call_te(bb, both, var("x", 2))

    function = bb.get()["both"]
    assert isinstance(function, PrimFunc)
    given = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(interpret(function, [given]), [given, given])


def test_shapes_and_attributes_are_passed_on() -> None:
    def filled(x: te.Tensor, to: tuple[Dim, ...], *, value: float) -> te.Tensor:
        return te.compute(to, lambda *_: x[()] * value, "filled")

    bb = BlockBuilder()
    x = var("x")
    with bb.function("main", [x]):
        out = bb.emit(te.call_te(bb, filled, x, shape([n, 3]), value=2.0))
        bb.emit_func_output(out)

    assert out.struct_info == tensor((n, 3), "float32")
    assert list(bb.get().functions) == ["filled", "main"]


def test_call_te_needs_known_shapes() -> None:
    with pytest.raises(IllTyped) as raised:
        te.call_te(BlockBuilder(), added, Var("x", TensorStructInfo(None, "float32", 2)), A_VAR)

    assert str(raised.value) == (
        'call_te: operand x is R.Tensor(dtype="float32", ndim=2), '
        "needs a tensor of known shape and dtype"
    )


A_VAR = var("y", n)


def test_substitution_keeps_what_is_shared() -> None:
    i, j = TirVar("i"), TirVar("j")
    x, y = Buffer("x", (n,), "float32"), Buffer("y", (n,), "float32")
    shared = x[i] + 1
    expr = shared * shared

    new = substitute(expr, {i: j}, {x: y})

    assert new == (y[j] + 1) * (y[j] + 1)
    assert isinstance(new, Binary)
    assert new.a is new.b
    assert variables(new) == {j}


def test_reads_and_writes_of_a_statement_are_found_and_replaced() -> None:
    prim_func = row_sums()
    a, b = prim_func.params
    c = Buffer("C", b.shape, b.dtype)

    body = substitute_stmt(prim_func.body, buffers={b: c})

    assert [s.buffer for s in stores(body)] == [c, c]
    assert [load.buffer for load in loads(body)] == [c, a]


def test_work_counts_shared_nodes_once_and_size_every_time() -> None:
    x = Buffer("x", (n,), "float32")
    e = te.exp(x[TirVar("i")])

    assert (work(e + e), work(x[TirVar("i") * 2])) == (9, 0)
    assert tree_size(e + e) == 7


i, j, k = TirVar("i"), TirVar("j"), TirVar("k")
EXTENTS: dict[TirVar, Dim] = {i: n, j: 12, k: 64}


def floordiv(a: TirExpr, b: Dim) -> TirExpr:
    return a // from_dim(b)


def mod(a: TirExpr, b: Dim) -> TirExpr:
    return a % from_dim(b)


FLAT = i * 768 + j * 64 + k


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (floordiv(FLAT, 768), i),
        (mod(FLAT, 768), j * 64 + k),
        (floordiv(mod(FLAT, 768), 64), j),
        (mod(FLAT, 64), k),
        (floordiv(floordiv(FLAT, 64), 12), i),
        (mod(floordiv(FLAT, 64), 12), j),
        (floordiv(j * from_dim(n) + i, n), j),
        (mod(j * from_dim(n) + i, n), i),
        (floordiv(j * (from_dim(n) + 1) + i, n + 1), j),
        (floordiv(k, 7), Binary("//", k, Imm(7, "int64"))),
        (mod(k + 64, 32), Binary("%", k, Imm(32, "int64"))),
        (mod(i, 0), Binary("%", i, Imm(0, "int64"))),
        (floordiv(j * 2 - k, 2), j + Binary("//", 0 - k, Imm(2, "int64"))),
        (i + 0 * j, i),
        (floordiv(j, 5) * 5 + mod(j, 5), j),
        (k + floordiv(j, 5) * 10 + mod(j, 5) * 2, k + j * 2),
    ],
)
def test_divisions_within_the_extents_go_away(index: TirExpr, expected: TirExpr) -> None:
    assert simplify_index(index, EXTENTS) == expected


SMALL = {TirVar("a"): 3, TirVar("b"): 4, TirVar("c"): 5}


def indices() -> st.SearchStrategy[TirExpr]:
    numbers = st.integers(0, 24).map(lambda v: Imm(v, "int64"))
    leaves: st.SearchStrategy[TirExpr] = st.one_of(st.sampled_from([*SMALL]), numbers)

    def larger(below: st.SearchStrategy[TirExpr]) -> st.SearchStrategy[TirExpr]:
        divisors = st.integers(1, 24).map(lambda v: Imm(v, "int64"))
        return st.one_of(
            st.builds(binary, st.sampled_from(["+", "-", "*"]), below, below),
            st.builds(binary, st.sampled_from(["//", "%"]), below, divisors),
        )

    return st.recursive(leaves, larger, max_leaves=8)


@settings(max_examples=60, deadline=None)
@given(indices())
def test_a_simplified_index_has_the_same_values(index: TirExpr) -> None:
    simpler = simplify_index(index, SMALL)

    for point in np.ndindex(*SMALL.values()):
        at: dict[TirVar, TirExpr] = {v: Imm(p, "int64") for v, p in zip(SMALL, point, strict=True)}
        assert value(substitute(simpler, at)) == value(substitute(index, at))


KINDS: tuple[BinaryKind, ...] = ("+", "-", "*", "//", "%", "min", "max")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (0, 5), (-9, -9)])
def test_arithmetic_of_literals_is_folded_to_what_it_computes(
    kind: BinaryKind, a: int, b: int
) -> None:
    left, right = Imm(a, "int64"), Imm(b, "int64")

    assert binary(kind, left, right) == Imm(value(Binary(kind, left, right)), "int64")


def test_what_has_no_number_is_not_folded() -> None:
    zero, most, one = (Imm(v, "int64") for v in (0, (1 << 63) - 1, 1))
    narrow = Imm(1, "int32")

    assert binary("//", one, zero) == Binary("//", one, zero)
    assert binary("%", one, zero) == Binary("%", one, zero)
    assert binary("+", most, one) == Binary("+", most, one)
    assert binary("+", narrow, narrow) == Binary("+", narrow, narrow)


def value(expr: TirExpr) -> int:
    out = Buffer("out", (), "int64")
    return int(interpret(PrimFunc((out,), Store(out, (), expr)), [])[0][()])
