"""``float16`` and ``bfloat16`` from script to machine code: kept in memory, computed in float32."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, load, optimize
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dtypes import STORED, limits
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Constant, Expr, Var, const
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.lower.fuse_tir import fuse_tir
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.script import load_module, parse, print_module, save_module
from relax_egraph.tir import te
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import PrimFunc

Array = np.ndarray[Any, Any]


def module(params: Sequence[Var], *steps: Expr, **attrs: Any) -> IRModule:
    """``main(params)``, whose result is the last of `steps`."""
    bb = BlockBuilder()
    with bb.function("main", params, attrs):
        with bb.dataflow():
            for step in steps[:-1]:
                bb.emit(step)
            out = bb.emit_output(steps[-1])
        bb.emit_func_output(out)
    return bb.get()


def loops(name: str, *operands: te.Tensor, **attrs: Any) -> PrimFunc:
    """The loop function of an operator."""
    made = LEGALIZE[name](*operands, **attrs)
    assert isinstance(made, te.Tensor)
    return te.create_prim_func(*operands, made)


def ones(count: int, dtype: str) -> Array:
    """A large number, and so many small ones that vanish beside it one by one."""
    large = 2 / float(limits(dtype).eps)
    return np.array([large, *[0.5] * count]).astype(dtype)


@pytest.mark.parametrize("dtype", STORED)
def test_an_element_of_elements_stays_of_its_dtype(dtype: str) -> None:
    x, y = te.placeholder((4,), dtype, "x"), te.placeholder((4,), dtype, "y")

    function = loops("add", x, y)

    assert print_module(IRModule({"f": function})) == (
        "@I.ir_module\n"
        "class Module:\n"
        "    @T.prim_func\n"
        "    def f(\n"
        f'        x: T.Buffer((4,), "{dtype}"),\n'
        f'        y: T.Buffer((4,), "{dtype}"),\n'
        f'        add: T.Buffer((4,), "{dtype}"),\n'
        "    ):\n"
        "        for i0 in T.serial(4):\n"
        '            with T.block("add"):\n'
        "                v_i0 = T.axis.spatial(4, i0)\n"
        "                add[v_i0] = x[v_i0] + y[v_i0]\n"
    )


@pytest.mark.parametrize("dtype", STORED)
def test_what_takes_several_steps_keeps_float32_between_them(dtype: str) -> None:
    x = te.placeholder((4, 8), dtype, "x")

    function = loops("nn.softmax", x, axis=-1)

    assert {b.dtype for b in function.allocs} == {"float32"}
    assert [b.dtype for b in function.outputs] == [dtype]


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("name", ["sum", "mean", "matmul"])
def test_sums_are_taken_in_float32(name: str, dtype: str) -> None:
    given = ones(2000, dtype)
    x = Var("x", tensor(given.shape, dtype))
    others = [const(np.ones(given.size, dtype))] if name == "matmul" else []
    program = module([x], call(name, x, *others))
    exact = given.astype(np.float64).sum() / (given.size if name == "mean" else 1)

    for result in (evaluate(program, "main", given), VirtualMachine(build(program))["main"](given)):
        np.testing.assert_array_equal(result, np.array(exact).astype(dtype), strict=True)


@pytest.mark.parametrize("dtype", STORED)
def test_sums_of_tensor_expressions_are_taken_in_float32(dtype: str) -> None:
    given = ones(2000, dtype)
    x, k = te.placeholder(given.shape, dtype, "x"), te.reduce_axis(given.size)

    function = te.create_prim_func(x, te.compute((), lambda: te.sum(x[k], k), "total"))

    expected = np.array(given.astype(np.float64).sum()).astype(dtype)
    np.testing.assert_array_equal(interpret(function, [given])[0], expected, strict=True)


def fused(x: Var, plus_one: Callable[[BlockBuilder], Expr], dtype: str) -> PrimFunc:
    """The loop function of ``(x + 1) - 1``."""
    bb = BlockBuilder()
    with bb.function("main", [x], {"primitive": True}):
        with bb.dataflow():
            out = bb.emit_output(call("subtract", plus_one(bb), const(1, dtype)))
        bb.emit_func_output(out)
    function = fuse_tir(bb.get())["main"]
    assert isinstance(function, PrimFunc)
    return function


def cast_sum(bb: BlockBuilder, x: Var, dtype: str) -> Expr:
    """``x + 1`` in float32, cast to `dtype`."""
    wide = bb.emit(call("astype", x, dtype="float32"))
    return bb.emit(call("astype", bb.emit(call("add", wide, const(1.0))), dtype=dtype))


@pytest.mark.parametrize("dtype", STORED)
def test_a_fused_chain_rounds_once_and_an_explicit_cast_rounds(dtype: str) -> None:
    given = (np.arange(1, 9) * float(limits(dtype).eps) / 16).astype(dtype)
    x = Var("x", tensor((8,), dtype))
    once = fused(x, lambda bb: bb.emit(call("add", x, const(1, dtype))), dtype)
    twice = fused(x, lambda bb: cast_sum(bb, x, dtype), dtype)

    (exact,), (rounded,) = (interpret(f, [given]) for f in (once, twice))

    np.testing.assert_array_equal(exact, given, strict=True)
    total = (given.astype(np.float32) + 1).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(rounded, (total - 1).astype(dtype), strict=True)


@pytest.mark.parametrize("dtype", STORED)
def test_constants_are_saved_and_printed_bit_by_bit(dtype: str, tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 0x7C00, 64, np.uint16)
    bits[:4] = [0, 0x8000, 1, 0x8001]
    weights = Constant(bits.view(dtype))
    x = Var("x", tensor((64,), dtype))
    program = module([x], call("add", x, weights))
    given = np.zeros(64, dtype)

    save_module(program, tmp_path / "text")
    assert_structural_equal(load_module(tmp_path / "text"), program)
    assert_structural_equal(parse(print_module(program, show_meta=True)), program)
    build(program).save(tmp_path / "saved")
    result = VirtualMachine(load(tmp_path / "saved"))["main"](given)

    np.testing.assert_array_equal(result, weights.data, strict=True)


@pytest.mark.parametrize(("short", "dtype"), [("f16", "float16"), ("bf16", "bfloat16")])
def test_scripts_say_storage_types_in_full_or_in_short(short: str, dtype: str) -> None:
    text = f"""
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((4,), "{{0}}"), y: T.Buffer((4,), "{{0}}")):
        for i in range(4):
            y[i] = T.max(x[i] * T.{dtype}(0.5), T.Cast("{{0}}", T.float32(2)))

    @R.function
    def main(x: R.Tensor((4,), "{{0}}")) -> R.Tensor((4,), "{{0}}"):
        with R.dataflow():
            gv = R.call_tir(Module.scale, (x,), out_sinfo=R.Tensor((4,), "{{0}}"))
            R.output(gv)
        return gv
"""
    program = parse(text.format(dtype))
    given = np.array([1, 3, 5, 7]).astype(dtype)

    assert_structural_equal(parse(text.format(short)), program)
    assert_structural_equal(parse(print_module(program)), program)
    result = VirtualMachine(build(program))["main"](given)
    np.testing.assert_array_equal(result, np.array([2, 2, 2.5, 3.5]).astype(dtype), strict=True)


def casts(dtype: str, between: str) -> IRModule:
    x = Var("x", tensor((4,), dtype))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            there = bb.emit(call("astype", x, dtype=between))
            out = bb.emit_output(call("astype", there, dtype=dtype))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("dtype", STORED)
def test_the_way_through_float32_is_none_but_that_through_a_storage_type_is(dtype: str) -> None:
    there_and_back = optimize(casts(dtype, "float32"))
    rounding = optimize(casts("float32", dtype))

    assert "astype" not in there_and_back.script()
    given = np.array([1 + float(limits(dtype).eps) / 3, 1e-3, -7, 0], np.float32)
    result = VirtualMachine(build(rounding))["main"](given)
    np.testing.assert_array_equal(result, given.astype(dtype).astype(np.float32))
