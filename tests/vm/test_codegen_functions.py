"""Control flow and functions from modules to results: branches, recursion, closures."""

import operator
from typing import Any

import numpy as np
import pytest

from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.expr import (
    Call,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    const,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    tensor,
)
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.vm import VirtualMachine
from tests.support.lowered import SIZES, add, f32, loops, lower, m, machine, n, numbers


def branch(bb: BlockBuilder, *values: Expr) -> SeqExpr:
    """A branch that binds `values` in turn and gives the last."""
    inner = BlockBuilder(bb.get())
    with inner.function("branch"):
        *_, last = [inner.emit(v) for v in values]
        inner.emit_func_output(last)
    function = inner.get()["branch"]
    assert isinstance(function, Function)
    return function.body


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_one_branch_runs(size: int, flag: bool) -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,), (n,)), "add")
    x, cond = Var("x", f32(n)), Var("cond", tensor((), "bool"))
    with bb.function("main", [x, cond]):
        double = bb.emit(call_tir(f, [x, x], f32(n)))
        triple = call_tir(f, [double, x], f32(n))
        fourfold = call_tir(f, [double, double], f32(n))
        r = bb.emit(If(cond, branch(bb, triple), branch(bb, fourfold), f32(n)))
        bb.emit_func_output(Tuple((r, double)))

    r, double = machine(bb.get(), add=add)["main"](numbers(size), np.bool_(flag))

    x_value = numbers(size)
    np.testing.assert_allclose(r, x_value * (3 if flag else 4), rtol=1e-6)
    np.testing.assert_allclose(double, x_value * 2, rtol=1e-6)


def power(bb: BlockBuilder) -> None:
    """``power(x, count)``: `x` times itself, `count` times, by recursion."""
    multiply = bb.add_func(loops((n,), (n,), (n,)), "multiply")
    x, count = Var("x", f32(n)), Var("count", tensor((), "int64"))
    recursive = GlobalVar("power")
    with bb.function("power", [x, count]):
        done = bb.emit(call_packed("is_zero", [count], [tensor((), "bool")]))
        inner = BlockBuilder(IRModule({"multiply": bb.get()["multiply"]}))
        with inner.function("branch"):
            less = inner.emit(call_packed("minus_one", [count], [tensor((), "int64")]))
            rest = inner.emit(Call(recursive, (x, less), {}, (f32(n),), f32(n)))
            inner.emit_func_output(inner.emit(call_tir(multiply, [rest, x], f32(n))))
        more = inner.get()["branch"]
        assert isinstance(more, Function)
        one = call_packed("ones", [ShapeExpr((n,))], [f32(n)])
        bb.emit_func_output(bb.emit(If(done, branch(bb, one), more.body, f32(n))))


@pytest.mark.parametrize("size", SIZES)
def test_recursion_has_a_heap_for_each_call(size: int) -> None:
    bb = BlockBuilder()
    power(bb)

    def multiply(x: Any, y: Any, out: Any, _: int) -> None:
        np.multiply(x, y, out=out)

    def minus_one(count: Any) -> Any:
        return np.asarray(count - 1)

    def ones(shape: tuple[int, ...]) -> Any:
        return np.ones(shape, np.float32)

    def is_zero(count: Any) -> Any:
        return np.asarray(count == 0)

    vm = machine(bb.get(), is_zero=is_zero, minus_one=minus_one, ones=ones, multiply=multiply)
    result = vm["power"](numbers(size), np.int64(5))

    np.testing.assert_allclose(result, numbers(size) ** 5, rtol=1e-5)


def test_functions_of_the_module_are_called_and_are_values() -> None:
    bb = BlockBuilder()
    y = Var("y", f32(n))
    with bb.function("identity", [y], {"private": True}):
        bb.emit_func_output(y)
    x, f = Var("x", f32(m)), Var("f", ObjectStructInfo())
    identity = GlobalVar("identity", bb.get()["identity"].struct_info)
    with bb.function("main", [x, f]):
        a = bb.emit(Call(identity, (x,)))
        b = bb.emit(Call(f, (a, identity)))
        bb.emit_func_output(Tuple((a, b, identity)))
    vm = machine(bb.get())
    value = numbers(3)

    def apply(a: Any, g: Any) -> Any:
        return g(a)

    a, b, function = vm["main"](value, apply)

    assert "identity" in vm
    assert a is value
    assert b is value
    assert function(value) is value
    with pytest.raises(KeyError):
        _ = vm["identity"]


def test_a_packed_function_is_called_and_is_a_value() -> None:
    bb = BlockBuilder()
    with bb.function("main", [x := Var("x", ObjectStructInfo())]):
        direct = bb.emit(Call(ExternFunc("f"), (x,)))
        bb.emit_func_output(Tuple((direct, ExternFunc("f"))))

    result, function = machine(bb.get(), f=operator.neg)["main"](3)

    assert (result, function(7)) == (-3, -7)


def test_dps_packed_functions_write_into_what_is_allocated() -> None:
    bb = BlockBuilder()
    with bb.function("main", [x := Var("x", f32(n))]):
        operands = (ExternFunc("my.sort"), Tuple((x,)))
        bb.emit_func_output(bb.emit(Call(OPS["call_dps_packed"], operands, {}, (f32(n),))))

    def sort(x: Any, out: Any) -> None:
        out[:] = np.sort(x)

    result = machine(bb.get(), **{"my.sort": sort})["main"](numbers(7))

    np.testing.assert_array_equal(result, np.sort(numbers(7)))


def test_operators_that_the_machine_knows_need_no_kernel() -> None:
    bb = BlockBuilder()
    x = Var("x", f32(n, 4))
    with bb.function("main", [x]):
        flat = bb.emit(call("reshape", x, ShapeExpr((n * 4,))))
        bb.emit_func_output(Tuple((flat, bb.emit(call("shape_of", flat)))))
    value = numbers(3, 4)

    flat, shape = machine(bb.get())["main"](value)

    assert np.shares_memory(flat, value)
    assert shape == (12,)


def test_operands_that_are_not_leaves_are_computed_first() -> None:
    nested = Call(ExternFunc("f"), (Var("x"), Tuple((Call(ExternFunc("g"), ()), PrimValue(1)))))
    assert isinstance(nested.args[0], Var)
    module = IRModule(
        {"main": Function((nested.args[0],), SeqExpr((), nested), ObjectStructInfo())}
    )

    def pair(*args: Any) -> tuple[Any, ...]:
        return args

    def seven() -> int:
        return 7

    result = VirtualMachine(codegen(module), {"f": pair, "g": seven})["main"](3)

    assert result == (3, (7, 1))


def test_a_constant_is_in_the_pool_once_and_is_not_copied_in() -> None:
    weight = const(numbers(3))
    bb = BlockBuilder()
    with bb.function("main"):
        bb.emit_func_output(Tuple((weight, weight, const(numbers(3)))))

    exe = codegen(lower(bb.get()))

    assert len(exe.constants) == 2
    assert np.shares_memory(np.asarray(exe.constants[0]), weight.data)
