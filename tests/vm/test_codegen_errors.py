"""What the lowering of a module refuses, and what a lowered module refuses when it runs."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import NotLowerable, RunError
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.expr import (
    Call,
    Expr,
    Function,
    GlobalVar,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Var,
)
from relax_egraph.lower.vm_codegen import codegen
from tests.support.lowered import add, add_twice, f32, m, machine, n, numbers


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            [numbers(3, 5), numbers(3, 4)],
            'main: parameter x: expected R.Tensor((m, 4), "float32"), '
            'got R.Tensor((3, 5), "float32"): dimension 1 is 5, needs 4',
        ),
        (
            [numbers(3, 4), numbers(5, 4)],
            'main: parameter y: expected R.Tensor((m, 4), "float32"), '
            'got R.Tensor((5, 4), "float32"): dimension 0 is 5, needs m = 3',
        ),
        (
            [numbers(3, 4), numbers(3, 4).astype(np.float64)],
            'main: parameter y: expected R.Tensor((m, 4), "float32"), '
            'got R.Tensor((3, 4), "float64")',
        ),
        (
            [numbers(12), numbers(3, 4)],
            'main: parameter x: expected R.Tensor((m, 4), "float32"), '
            'got R.Tensor((12,), "float32")',
        ),
        (
            [3, numbers(3, 4)],
            'main: parameter x: expected R.Tensor((m, 4), "float32"), got 3',
        ),
        (
            [numbers(3, 4)],
            'main(x: R.Tensor((m, 4), "float32"), y: R.Tensor((m, 4), "float32")) '
            "takes 2 arguments, got 1",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_errors(args: list[Any], message: str) -> None:
    main = machine(add_twice(), add=add)["main"]

    with pytest.raises(RunError) as error:
        main(*args)

    assert str(error.value) == message


def test_composite_extents_of_parameters_and_casts_are_asserted() -> None:
    bb = BlockBuilder()
    x, y = Var("x", f32(n * 4)), Var("y", f32(n))
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit_match_cast(x, f32(n + 9), "cast"))
    main = machine(bb.get())["main"]

    messages: list[str] = []
    for args in [(numbers(8), numbers(3)), (numbers(8), numbers(2))]:
        with pytest.raises(RunError) as error:
            main(*args)
        messages.append(str(error.value))

    np.testing.assert_array_equal(main(numbers(12), numbers(3)), numbers(12))
    assert messages == [
        'main: parameter x: expected R.Tensor((n * 4,), "float32"), '
        'got R.Tensor((8,), "float32"): dimension 0 is 8, needs n * 4 = 12',
        'main: match_cast cast: expected R.Tensor((n + 9,), "float32"), '
        'got R.Tensor((8,), "float32"): dimension 0 is 8, needs n + 9 = 11',
    ]


X = Var("x", f32(n))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (call("add", X, X), "main: R.add has no instruction: run legalize_ops first"),
        (
            call_tir(GlobalVar("f"), [X], f32(n)),
            "main: R.call_tir has no instruction: run call_tir_rewrite first",
        ),
        (
            call("builtin.alloc_tensor", ShapeExpr((3,)), StringImm("int8")),
            "main: R.builtin.alloc_tensor has no instruction: run vm_memory_lower first",
        ),
        (
            call_packed("f", [ShapeExpr((n, 4))], []),
            "main: the shape (n, 4) has no instruction: run vm_shape_lower first",
        ),
        (
            call_packed("f", [PrimValue(n * 4)], []),
            "main: the dimension n * 4 has no instruction: run vm_shape_lower first",
        ),
        (Call(GlobalVar("f"), ()), "main: no function 'f' in the module"),
        (
            Function((), SeqExpr((), X), f32(n)),
            "main: a local function has no code: run lambda_lift first",
        ),
    ],
)
def test_what_is_not_lowered_is_refused(value: Expr, message: str) -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        bb.emit_func_output(bb.emit(value))

    with pytest.raises(NotLowerable) as error:
        codegen(bb.get())

    assert str(error.value) == message


def test_a_cast_that_is_left_is_refused() -> None:
    bb = BlockBuilder()
    with bb.function("main", [X]):
        bb.emit_func_output(bb.emit_match_cast(X, f32(m)))

    with pytest.raises(NotLowerable) as error:
        codegen(bb.get())

    assert str(error.value) == "main: R.match_cast has no instruction: run vm_shape_lower first"
