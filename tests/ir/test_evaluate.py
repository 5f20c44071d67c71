"""Evaluation of every kind of expression on numpy arrays, and what it refuses."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
    shape,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.tir.expr import Buffer, Imm
from relax_egraph.tir.stmt import PrimFunc, Store

n, m, k = symbol("n"), symbol("m"), symbol("k")
INFO = tensor((n, 4), "float32")
ONES = np.ones((3, 4), np.float32)


def returning(params: Sequence[Var], *values: Expr) -> IRModule:
    """A module whose `main` binds each value and returns the last one's variable."""
    bb = BlockBuilder()
    with bb.function("main", params):
        out = [bb.emit(v, f"v{i}") for i, v in enumerate(values)]
        bb.emit_func_output(out[-1])
    return bb.get()


def x_of(info: StructInfo = INFO) -> Var:
    return Var("x", info)


# --- what programs mean -----------------------------------------------------------------


def test_operators_are_applied_in_order() -> None:
    x = x_of()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(call("add", x, const(1.0)))
            b = bb.emit_output(call("sum", a, axis=1))
        bb.emit_func_output(b)

    result = evaluate(bb.get(), "main", ONES)

    np.testing.assert_array_equal(result, np.full(3, 8, np.float32), strict=True)


def test_leaves_have_their_values() -> None:
    x = x_of()
    leaves = Tuple((shape([n * 2, 4]), PrimValue(n), PrimValue(1.5), StringImm("s"), const(2)))

    result = evaluate(returning([x], leaves), "main", ONES)

    assert result == ((6, 4), 3, 1.5, "s", np.int64(2))


def test_fields_are_taken_out_of_tuples() -> None:
    x = x_of(TupleStructInfo((tensor((n,), "int8"), tensor((n,), "bool"))))
    pair = (np.zeros(2, np.int8), np.ones(2, np.bool_))

    result = evaluate(returning([x], TupleGetItem(x, 1)), "main", pair)

    assert result is pair[1]


@pytest.mark.parametrize(("cond", "expected"), [(True, 2.0), (False, 0.0)])
def test_one_branch_runs(cond: bool, expected: float) -> None:
    c, x = Var("c", tensor((), "bool")), x_of(tensor((), "float32"))
    then, other = (Var(name, x.struct_info) for name in ("then", "other"))
    choice = If(
        c,
        SeqExpr((BindingBlock((VarBinding(then, call("add", x, x)),)),), then),
        SeqExpr((BindingBlock((VarBinding(other, call("subtract", x, x)),)),), other),
        x.struct_info,
    )

    result = evaluate(returning([c, x], choice), "main", np.array(cond), np.float32(1).reshape(()))

    assert result == expected


def test_functions_of_the_module_are_called_in_their_own_symbols() -> None:
    y = Var("y", tensor((m, n), "float32"))
    bb = BlockBuilder()
    with bb.function("flip", [y], {"primitive": True, "private": True}):
        with bb.dataflow():
            out = bb.emit_output(call("reshape", y, shape([n, m])))
        bb.emit_func_output(out)
    x = x_of()
    flip = GlobalVar("flip", bb.get()["flip"].struct_info)
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(Call(flip, (x,))))

    result = evaluate(bb.get(), "main", ONES)

    np.testing.assert_array_equal(result, np.ones((4, 3), np.float32), strict=True)


def test_local_functions_see_what_is_around_them() -> None:
    x, y = x_of(), Var("y", INFO)
    out = Var("out", INFO)
    body = SeqExpr((BindingBlock((VarBinding(out, call("add", x, y)),)),), out)
    bb = BlockBuilder()
    with bb.function("main", [x]):
        local = bb.emit(Function((y,), body, INFO))
        bb.emit_func_output(bb.emit(Call(local, (x,))))

    result = evaluate(bb.get(), "main", ONES)

    np.testing.assert_array_equal(result, ONES * 2, strict=True)


def test_a_function_is_a_value() -> None:
    bb = BlockBuilder()
    x = x_of()
    with bb.function("twice", [x]):
        bb.emit_func_output(bb.emit(call("add", x, x)))
    y = Var("y", INFO)
    with bb.function("main", [y]):
        applied = call_packed("apply", [GlobalVar("twice"), ExternFunc("one"), y], [INFO])
        bb.emit_func_output(bb.emit(applied))

    def apply(f: Callable[..., Any], g: Callable[..., Any], value: Any) -> Any:
        return f(value) + g()

    result = evaluate(bb.get(), "main", ONES, packed={"apply": apply, "one": lambda: np.float32(1)})

    np.testing.assert_array_equal(result, ONES * 3, strict=True)


def test_match_cast_binds_symbols() -> None:
    x = x_of(ObjectStructInfo())
    bb = BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit_match_cast(x, tensor((k, k), "float32"), "y")
        bb.emit_func_output(bb.emit(call("reshape", y, shape([k * k]))))

    result = evaluate(bb.get(), "main", np.eye(3, dtype=np.float32))

    np.testing.assert_array_equal(result, np.eye(3, dtype=np.float32).ravel(), strict=True)


def test_the_order_of_parameters_does_not_matter_to_symbols() -> None:
    x, s = x_of(tensor((n + m,), "int8")), Var("s", ShapeStructInfo((n, m), 2))
    p = Var("p", PrimStructInfo("int64", k))

    result = evaluate(
        returning([x, s, p], shape([n, m, k])), "main", np.zeros(5, np.int8), (2, 3), 7
    )

    assert result == (2, 3, 7)


def test_packed_functions_get_values_by_name() -> None:
    x = x_of()
    made = call_packed("scale", [x, PrimValue(n)], [INFO], pure=True)

    def scale(a: Any, factor: int) -> Any:
        return a * factor

    result = evaluate(returning([x], made), "main", ONES, packed={"scale": scale})

    np.testing.assert_array_equal(result, ONES * 3, strict=True)


def test_packed_functions_write_outputs_that_were_nan() -> None:
    x = x_of()
    made = Call(
        OPS["call_dps_packed"],
        (ExternFunc("fill"), Tuple((x,))),
        sinfo_args=(TupleStructInfo((INFO, tensor((n,), "int8"))),),
    )
    before: list[Any] = []

    def fill(a: Any, out: Any, count: Any) -> None:
        before.extend([out.copy(), count.copy()])
        out[:] = a
        count[:] = 1

    out, count = evaluate(returning([x], made), "main", ONES, packed={"fill": fill})

    np.testing.assert_array_equal(before[0], np.full((3, 4), np.nan, np.float32), strict=True)
    np.testing.assert_array_equal(before[1], np.full(3, -128, np.int8), strict=True)
    np.testing.assert_array_equal(out, ONES, strict=True)
    np.testing.assert_array_equal(count, np.ones(3, np.int8), strict=True)


def loops() -> PrimFunc:
    a, b = (Buffer(name, (n, 4), "float32") for name in "ab")
    zero = Imm(0, "int64")
    return PrimFunc((a, b), Store(b, (zero, zero), a[zero, zero]), scalars=("k",))


def test_loop_functions_are_run_by_the_callback_on_inputs_outputs_and_scalars() -> None:
    x = x_of()
    made = call_tir(GlobalVar("loops"), [x], INFO, shape([n * 2]))
    function = loops()
    module = IRModule({"loops": function, **returning([x], made).functions})
    seen: list[BaseFunc] = []

    def run(f: BaseFunc, arrays: Sequence[Any]) -> None:
        seen.append(f)
        x, out, scalar = arrays
        out[:] = x * scalar

    result = evaluate(module, "main", ONES, prim_func=run)

    np.testing.assert_array_equal(result, ONES * 6, strict=True)
    assert seen == [function]


# --- what is refused --------------------------------------------------------------------


def first_row(x: Any) -> Any:
    return x[:1]


PACKED: dict[str, Callable[..., Any]] = {"wrong": first_row, "object": lambda: "text"}


REFUSED: list[tuple[IRModule, tuple[Any, ...], str]] = [
    (
        returning([x_of()], x_of()),
        (np.ones((3, 5), np.float32),),
        'main: parameter x is R.Tensor((3, 5), "float32"), '
        'needs R.Tensor((n, 4), "float32") with n = 3',
    ),
    (
        returning([x_of()], const(1)),
        (np.ones((3, 4)),),
        'main: parameter x is R.Tensor((3, 4), "float64"), needs R.Tensor((n, 4), "float32")',
    ),
    (
        returning([x_of()], const(1)),
        ([1.0],),
        'main: parameter x is an object of list, needs R.Tensor((n, 4), "float32")',
    ),
    (
        returning([x_of(ShapeStructInfo((n, n), 2))], const(1)),
        ((2, 3),),
        "main: parameter x is R.shape([2, 3]), needs R.Shape((n, n)) with n = 2",
    ),
    (
        returning([x_of(TupleStructInfo((INFO,)))], const(1)),
        (("text", 1),),
        "main: parameter x is R.Tuple('text', 1), needs R.Tuple(R.Tensor((n, 4), \"float32\"))",
    ),
    (
        returning([x_of(PrimStructInfo("int64"))], const(1)),
        (1.5,),
        'main: parameter x is 1.5, needs R.Prim("int64")',
    ),
    (
        returning([x_of(tensor((n * 2,), "float32"))], const(1)),
        (np.ones(4, np.float32),),
        'main: parameter x is R.Tensor((4,), "float32"), needs R.Tensor((n * 2,), "float32"), '
        "but nothing says what n is",
    ),
    (returning([x_of()], const(1)), (), "main takes 1 arguments, got 0"),
    (
        returning([x_of()], Var("y", INFO)),
        (ONES,),
        "main: v0 reads y, which has no value",
    ),
    (
        returning([x_of()], shape([m, 1])),
        (ONES,),
        "main: v0 needs m, but nothing says what m is",
    ),
    (
        returning([], call_packed("missing", [], [])),
        (),
        "main: v0 calls the packed function 'missing'; known are: object, wrong",
    ),
    (
        returning([], call_packed("object", [], [tensor((), "int8")])),
        (),
        "main: v0, the result of 'object', is 'text', needs R.Tensor((), \"int8\")",
    ),
    (
        returning([], call_tir(GlobalVar("f"), [], tensor((), "int8"))),
        (),
        "main: v0 calls the loop function f, but evaluate has no prim_func to run it",
    ),
]


@pytest.mark.parametrize(("module", "args", "message"), REFUSED)
def test_evaluation_refuses(module: IRModule, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(RunError) as refusal:
        evaluate(module, "main", *args, packed=PACKED)

    assert str(refusal.value) == message


def test_a_packed_function_that_breaks_its_promise_is_found() -> None:
    x = x_of()
    module = returning([x], call_packed("wrong", [x], [INFO]))

    with pytest.raises(RunError) as refusal:
        evaluate(module, "main", ONES, packed=PACKED)

    assert str(refusal.value) == (
        "main: v0, the result of 'wrong', is R.Tensor((1, 4), \"float32\"), "
        'needs R.Tensor((n, 4), "float32") with n = 3'
    )


def test_a_failed_match_cast_says_variable_expected_and_found() -> None:
    x = x_of()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_match_cast(x, tensor((n, n), "float32"), "y"))

    with pytest.raises(RunError) as refusal:
        evaluate(bb.get(), "main", ONES)

    assert str(refusal.value) == (
        'main: match_cast y is R.Tensor((3, 4), "float32"), '
        'needs R.Tensor((n, n), "float32") with n = 3'
    )


def test_operands_that_do_not_fit_at_run_time_are_located() -> None:
    x = x_of(TensorStructInfo())
    module = returning([x], call("add", x, const([1.0, 2.0])))

    with pytest.raises(RunError) as refusal:
        evaluate(module, "main", ONES)

    assert str(refusal.value) == (
        'main: v0: R.add of R.Tensor((3, 4), "float32"), R.Tensor((2,), "float32"): '
        "the shapes do not broadcast"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "no function 'other' in the module; there are: loops"),
        ("loops", "loops is a loop function: it is run by R.call_tir"),
    ],
)
def test_only_relax_functions_of_the_module_are_run(name: str, message: str) -> None:
    with pytest.raises(RunError) as refusal:
        evaluate(IRModule({"loops": loops()}), name)

    assert str(refusal.value) == message
