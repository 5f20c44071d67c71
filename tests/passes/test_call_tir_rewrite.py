"""Calls in destination-passing style become allocations and calls that write into them."""

from collections.abc import Sequence

import pytest

from relax_egraph.errors import IllFormed, IllTyped
from relax_egraph.ir.block_builder import BlockBuilder, call, call_tir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, ExternFunc, If, SeqExpr, ShapeExpr, Tuple, TupleGetItem, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.call_tir_rewrite import call_tir_rewrite
from relax_egraph.tir.stmt import PrimFunc
from tests.support.lowered import f32, k, loops, m, n, text


def one_call(
    function: PrimFunc,
    params: Sequence[StructInfo],
    out: StructInfo,
    tir_vars: tuple[Dim, ...] | None = None,
) -> IRModule:
    """``main(p0, p1, …)`` returns ``R.call_tir(cls.f, (p0, p1, …), out, tir_vars)``."""
    bb = BlockBuilder()
    f = bb.add_func(function, "f")
    variables = [Var(f"p{i}", info) for i, info in enumerate(params)]
    with bb.function("main", variables):
        shape = None if tir_vars is None else ShapeExpr(tir_vars)
        bb.emit_func_output(bb.emit(call_tir(f, variables, out, shape)))
    return bb.get()


def test_a_call_becomes_an_allocation_and_a_call_that_writes_into_it() -> None:
    before = one_call(loops((n, 4), (n, 4), (n, 4)), [f32(m, 4), f32(m, 4)], f32(m, 4))

    after = call_tir_rewrite(before)

    assert not find_ill_formed(after)
    assert text(after) == (
        'impure (p0: R.Tensor((m, 4), "float32"), p1: R.Tensor((m, 4), "float32")) '
        '-> R.Tensor((m, 4), "float32")\n'
        "  block\n"
        '    gv: R.Tensor((m, 4), "float32") = '
        "R.builtin.alloc_tensor(shape(m, 4), 'float32')\n"
        "    _: R.Tuple() = @f(p0, p1, gv, m, R.Tuple())\n"
        "  return gv"
    )


def test_several_results_are_a_tuple_of_allocations() -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,), (n, n), num_outputs=2), "f")
    x = Var("x", f32(m))
    with bb.function("main", [x]):
        both = bb.emit(call_tir(f, [x], [f32(m), f32(m, m)]))
        second = bb.emit(TupleGetItem(both, 1))
        bb.emit_func_output(Tuple((both, second)))

    after = call_tir_rewrite(bb.get())

    assert text(after) == (
        'impure (x: R.Tensor((m,), "float32")) -> R.Tuple(R.Tuple(R.Tensor((m,), "float32"), '
        'R.Tensor((m, m), "float32")), R.Tensor((m, m), "float32"))\n'
        "  block\n"
        "    gv_0: R.Tensor((m,), \"float32\") = R.builtin.alloc_tensor(shape(m,), 'float32')\n"
        '    gv_1: R.Tensor((m, m), "float32") = '
        "R.builtin.alloc_tensor(shape(m, m), 'float32')\n"
        "    _: R.Tuple() = @f(x, gv_0, gv_1, m, R.Tuple())\n"
        '    gv1: R.Tensor((m, m), "float32") = gv_1\n'
        "  return ((gv_0, gv_1), gv1)"
    )


def test_call_dps_packed_becomes_an_allocation_and_a_packed_call() -> None:
    bb = BlockBuilder()
    x = Var("x", f32(n))
    operands = (ExternFunc("my.sort"), Tuple((x,)))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(Call(OPS["call_dps_packed"], operands, {}, (f32(n),))))

    after = call_tir_rewrite(bb.get())

    assert not find_ill_formed(after)
    assert text(after) == (
        'impure (x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32")\n'
        "  block\n"
        "    gv: R.Tensor((n,), \"float32\") = R.builtin.alloc_tensor(shape(n,), 'float32')\n"
        '    _: R.Tuple() = R.call_packed("my.sort", x, gv, R.Tuple())\n'
        "  return gv"
    )


def test_a_call_whose_result_is_not_used_stays() -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,)), "f")
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        bb.emit(call_tir(f, [x], f32(n)))
        bb.emit_func_output(x)

    after = call_tir_rewrite(bb.get())

    assert text(after) == (
        'impure (x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32")\n'
        "  block\n"
        "    gv: R.Tensor((n,), \"float32\") = R.builtin.alloc_tensor(shape(n,), 'float32')\n"
        "    _: R.Tuple() = @f(x, gv, n, R.Tuple())\n"
        "  return x"
    )


def test_calls_inside_of_branches_are_rewritten() -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,)), "f")
    x, cond = Var("x", f32(n)), Var("cond", tensor((), "bool"))
    inner = BlockBuilder(bb.get())
    with inner.function("branch", [x]):
        inner.emit_func_output(inner.emit(call_tir(f, [x], f32(n)), "lv"))
    body = inner.get()["branch"].body  # pyright: ignore  # it is a relax function
    with bb.function("main", [x, cond]):
        bb.emit_func_output(bb.emit(If(cond, body, SeqExpr((), x), f32(n)), "r"))

    after = call_tir_rewrite(bb.get())

    assert text(after) == (
        'impure (x: R.Tensor((n,), "float32"), cond: R.Tensor((), "bool")) '
        '-> R.Tensor((n,), "float32")\n'
        "  block\n"
        '    r: R.Tensor((n,), "float32") = if cond\n'
        "      block\n"
        '        lv: R.Tensor((n,), "float32") = '
        "R.builtin.alloc_tensor(shape(n,), 'float32')\n"
        "        _: R.Tuple() = @f(x, lv, n, R.Tuple())\n"
        "      return lv\n"
        "    else\n"
        "      return x\n"
        "  return r"
    )


def test_the_symbols_of_a_loop_function_are_given_in_the_callers_dimensions() -> None:
    """``n`` and ``k`` of the loop function are solved from ``n * 4`` and ``n + k``."""
    before = one_call(loops((n * 4,), (n + k,)), [f32(m * 8)], f32(m * 3))

    after = call_tir_rewrite(before)

    assert text(after).splitlines()[3] == ("    _: R.Tuple() = @f(p0, gv, m * 2, m, R.Tuple())")


def test_a_symbol_of_the_loop_function_may_have_the_name_of_another_of_the_caller() -> None:
    before = one_call(loops((m,), (m * n,)), [f32(n)], f32(n * k))

    after = call_tir_rewrite(before)

    assert text(after).splitlines()[3] == "    _: R.Tuple() = @f(p0, gv, n, k, R.Tuple())"


def test_scalars_of_the_loop_function_are_the_tir_vars() -> None:
    before = one_call(loops((n,), (n,), scalars=["start"]), [f32(m)], f32(m), (k + 1,))

    after = call_tir_rewrite(before)

    assert text(after).splitlines()[3] == "    _: R.Tuple() = @f(p0, gv, k + 1, m, R.Tuple())"


def test_a_shape_that_is_not_known_is_checked_before_the_call() -> None:
    before = one_call(
        loops((n, 4), (n, 4), (n, 4)), [f32(m, 4), tensor(None, "float32", 2)], f32(m, 4)
    )

    after = call_tir_rewrite(before)

    assert not find_ill_formed(after)
    assert text(after).splitlines()[3:] == [
        '    p11: R.Tensor((m, 4), "float32") = match_cast(p1, R.Tensor((m, 4), "float32"))',
        "    _: R.Tuple() = @f(p0, p11, gv, m, R.Tuple())",
        "  return gv",
    ]


def test_equality_that_is_not_proven_is_checked_before_the_call() -> None:
    before = one_call(loops((n,), (n,), (n,)), [f32(m), f32(k)], f32(m))

    after = call_tir_rewrite(before)

    assert text(after).splitlines()[3:] == [
        '    p11: R.Tensor((m,), "float32") = match_cast(p1, R.Tensor((m,), "float32"))',
        "    _: R.Tuple() = @f(p0, p11, gv, m, R.Tuple())",
        "  return gv",
    ]


def test_a_result_of_computed_shape_is_allocated_and_checked() -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,)), "f")
    x, s = Var("x", f32(m)), Var("s", ShapeStructInfo(None, 1))
    with bb.function("main", [x, s]):
        bb.emit_func_output(bb.emit(call_tir(f, [x], TensorStructInfo(s, "float32", 1))))

    after = call_tir_rewrite(bb.get())

    assert text(after).splitlines()[2:] == [
        "    gv: R.Tensor(dtype=\"float32\", ndim=1) = R.builtin.alloc_tensor(s, 'float32')",
        '    gv1: R.Tensor((m,), "float32") = match_cast(gv, R.Tensor((m,), "float32"))',
        "    _: R.Tuple() = @f(x, gv1, m, R.Tuple())",
        "  return gv",
    ]


def test_a_module_without_such_calls_is_returned_itself() -> None:
    bb = BlockBuilder()
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(call("nn.relu", x)))
    module = bb.get()

    after = call_tir_rewrite(module)

    assert after is module


def test_a_dataflow_block_is_refused() -> None:
    bb = BlockBuilder()
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(call("nn.relu", x))
        bb.emit_func_output(out)

    with pytest.raises(IllFormed) as error:
        call_tir_rewrite(bb.get())

    assert str(error.value) == "function 'main' has a dataflow block: run to_non_dataflow first"


@pytest.mark.parametrize(
    ("function", "params", "out", "message"),
    [
        (
            loops((n, 4), (n, 4)),
            [f32(m, 5)],
            f32(m, 4),
            'main: R.call_tir of f: b0 is R.Tensor((m, 5), "float32"), '
            'needs R.Tensor((m, 4), "float32")',
        ),
        (
            loops((n, 4), (n, 4)),
            [tensor((m, 4), "float64")],
            f32(m, 4),
            'main: R.call_tir of f: b0 is R.Tensor((m, 4), "float64"), '
            'needs R.Tensor((m, 4), "float32")',
        ),
        (
            loops((n, 4), (n,)),
            [f32(m)],
            f32(m),
            'main: R.call_tir of f: b0 is R.Tensor((m,), "float32"), '
            'needs R.Tensor((m, 4), "float32")',
        ),
        (
            loops((n,), (n,), (n,)),
            [f32(m)],
            f32(m),
            "main: R.call_tir of f: 1 operands and 1 results, needs 2 and 1",
        ),
        (
            loops((n,), (n,)),
            [TupleStructInfo(())],
            f32(m),
            "main: R.call_tir of f: operand 0 is R.Tuple(), needs a tensor",
        ),
        (
            loops((n * k,), (n + k,)),
            [f32(m)],
            f32(m),
            "main: R.call_tir of f: no operand has a known extent that binds its symbol k",
        ),
        (
            loops((n * 4,), (4,)),
            [f32(m)],
            f32(4),
            "main: R.call_tir of f: no operand has a known extent that binds its symbol n",
        ),
        (
            loops((n,), (n,), scalars=["i", "j"]),
            [f32(m)],
            f32(m),
            "main: R.call_tir of f: 0 tir_vars, needs 2 (i, j)",
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    function: PrimFunc, params: Sequence[StructInfo], out: StructInfo, message: str
) -> None:
    module = one_call(function, params, out)

    with pytest.raises(IllTyped) as error:
        call_tir_rewrite(module)

    assert str(error.value) == message
