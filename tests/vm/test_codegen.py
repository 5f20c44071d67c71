"""From modules to results: all passes, bytecode, the interpreter."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.expr import (
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.vm import Executable, VirtualMachine
from tests.support.lowered import (
    SIZES,
    add,
    add_twice,
    copy,
    f32,
    loops,
    lower,
    m,
    machine,
    n,
    numbers,
)


@pytest.mark.parametrize("size", SIZES)
def test_a_dataflow_block_of_calls_runs(size: int) -> None:
    x, y = numbers(2, size, 4)

    result = machine(add_twice(), add=add)["main"](x, y=y)

    np.testing.assert_array_equal(result, x + y + y)


def test_the_code_of_a_dataflow_block_reuses_its_registers() -> None:
    exe = codegen(lower(add_twice()))

    listing = exe.as_text()

    info = 'R.Tensor((m, 4), "float32")'
    said = f"c[1]='{info}'"
    assert listing == (
        f"@main(x: {info}, y: {info}):\n"
        "    0  call  vm.builtin.alloc_shape_heap  in: i2  dst: %2  # shape_heap\n"
        "    1  call  vm.builtin.check_tensor_info  "
        f"in: %0, c[0]='main: parameter x', {said}, i2, c[2]='float32'  dst: void\n"
        "    2  call  vm.builtin.match_shape  "
        f"in: %0, %2, c[0]='main: parameter x', {said}, c[3]='m -> @0', c[4]='4'  dst: void\n"
        "    3  call  vm.builtin.check_tensor_info  "
        f"in: %1, c[5]='main: parameter y', {said}, i2, c[2]='float32'  dst: void\n"
        "    4  call  vm.builtin.match_shape  "
        f"in: %1, %2, c[5]='main: parameter y', {said}, c[6]='m == @0', c[4]='4'  dst: void\n"
        "    5  call  vm.builtin.compute_shapes  in: %2, i1, c[7]='@0 * 16'  dst: void\n"
        "    6  call  vm.builtin.load_prim  in: %2, i1  dst: %3  # dim\n"
        "    7  call  vm.builtin.alloc_storage  in: vm, %3  dst: %4  # storage\n"
        "    8  call  vm.builtin.make_shape  in: %2, c[8]='@0', c[4]='4'  dst: %5  # shape\n"
        "    9  call  vm.builtin.alloc_tensor  in: %4, i0, %5, c[2]='float32'  dst: %4  # lv\n"
        "   10  call  vm.builtin.load_prim  in: %2, i0  dst: %2  # dim1\n"
        "   11  call  add  in: %0, %1, %4, %2  dst: void  # lv\n"
        "   12  call  vm.builtin.alloc_storage  in: vm, %3  dst: %3  # storage1\n"
        "   13  call  vm.builtin.alloc_tensor  in: %3, i0, %5, c[2]='float32'  dst: %5  # gv\n"
        "   14  call  add  in: %4, %1, %5, %2  dst: void  # gv\n"
        "   15  ret   %5"
    )


def test_static_shapes_are_constants() -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n, 4), (n, 4)), "copy")
    x = Var("x", f32(2, 4))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(call_tir(f, [x], f32(2, 4))))
    exe = codegen(lower(bb.get()))

    listing = exe.as_text().splitlines()[4:]

    assert listing == [
        "    3  call  vm.builtin.alloc_storage  in: vm, i32  dst: %1  # storage",
        "    4  call  vm.builtin.alloc_tensor  "
        "in: %1, i0, c[5]=(2, 4), c[2]='float32'  dst: %1  # gv",
        "    5  call  copy  in: %0, %1, i2  dst: void  # gv",
        "    6  ret   %1",
    ]


@pytest.mark.parametrize("size", SIZES)
def test_computed_dimensions_reach_kernels_and_results(size: int) -> None:
    half = dims.floordiv(n, 2)
    bb = BlockBuilder()
    f = bb.add_func(loops((n, 4), (n * 4,), (half,), num_outputs=2), "split")
    x = Var("x", f32(m, 4))
    with bb.function("main", [x]):
        out = [f32(m * 4), f32(dims.floordiv(m, 2))]
        both = bb.emit(call_tir(f, [x], out))
        first = bb.emit(TupleGetItem(both, 0))
        bb.emit_func_output(Tuple((both, first, ShapeExpr((m, dims.minimum(m, 3))), PrimValue(m))))
    x_value = numbers(size, 4)

    def split(x: Any, flat: Any, top: Any, count: int) -> None:
        assert count == size
        flat[:] = x.reshape(-1)
        top[:] = x[: size // 2, 0]

    (flat, top), again, shape, dim = machine(bb.get(), split=split)["main"](x_value)

    np.testing.assert_array_equal(flat, x_value.reshape(-1))
    np.testing.assert_array_equal(top, x_value[: size // 2, 0])
    assert again is flat
    assert (shape, dim) == ((size, min(size, 3)), size)


@pytest.mark.parametrize("size", SIZES)
def test_unknown_shapes_come_back_through_match_cast(size: int) -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,)), "copy")
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        u = bb.emit(call("unique", x))
        c = bb.emit_match_cast(u, f32(m))
        r = bb.emit(call_tir(f, [c], f32(m)))
        bb.emit_func_output(Tuple((r, ShapeExpr((n, m)))))
    value = np.array([5, 3, 3, 1, 5, 5, 3], np.float32)[:size]

    result, shape = machine(bb.get(), copy=copy)["main"](value)

    np.testing.assert_array_equal(result, np.unique(value))
    assert shape == (size, len(np.unique(value)))


def two(_: Any) -> tuple[int]:
    return (2,)


def test_a_result_of_computed_shape_is_allocated_at_run_time() -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,)), "copy")
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        s = bb.emit(call_packed("my.shape", [x], [ShapeStructInfo(None, 1)]))
        r = bb.emit(call_tir(f, [x], TensorStructInfo(s, "float32", 1)))
        bb.emit_func_output(r)
    good = machine(bb.get(), copy=copy, **{"my.shape": np.shape})
    bad = machine(bb.get(), copy=copy, **{"my.shape": two})

    result = good["main"](numbers(7))
    with pytest.raises(RunError) as error:
        bad["main"](numbers(7))

    np.testing.assert_array_equal(result, numbers(7))
    assert str(error.value) == (
        'main: match_cast gv11: expected R.Tensor((n,), "float32"), '
        'got R.Tensor((2,), "float32"): dimension 0 is 2, needs n = 7'
    )


def test_parameters_of_every_kind_arrive() -> None:
    bb = BlockBuilder()
    t = Var("t", TupleStructInfo((f32(n), f32(n * 2))))
    s, i, o = (
        Var("s", ShapeStructInfo((n, m), 2)),
        Var("i", PrimStructInfo("int64", m)),
        Var("o", ObjectStructInfo()),
    )
    with bb.function("main", [t, s, i, o]):
        second = bb.emit(TupleGetItem(t, 1))
        bb.emit_func_output(Tuple((second, s, i, o, StringImm("end"), PrimValue(2.5))))
    main = machine(bb.get())["main"]

    second, *rest = main([numbers(3), numbers(6)], (3, 5), 5, "anything")

    np.testing.assert_array_equal(second, numbers(6))
    assert rest == [(3, 5), 5, "anything", "end", 2.5]


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Additions, each of two values among the parameters and those before it."""
    count = draw(st.integers(1, 12))
    return [(draw(st.integers(0, i + 1)), draw(st.integers(0, i + 1))) for i in range(count)]


def graph_module(graph: list[tuple[int, int]], results: list[int]) -> IRModule:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,), (n,)), "add")
    values = [Var("x", f32(m)), Var("y", f32(m))]
    with bb.function("main", values[:]):
        with bb.dataflow():
            for a, b in graph:
                values.append(bb.emit_output(call_tir(f, [values[a], values[b]], f32(m))))
        bb.emit_func_output(Tuple(tuple(values[r] for r in results)))
    return bb.get()


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 5), st.data())
def test_registers_are_not_reused_too_early(
    graph: list[tuple[int, int]], size: int, data: st.DataObject
) -> None:
    results = data.draw(st.lists(st.integers(0, len(graph) + 1), max_size=3))
    expected = [numbers(size), numbers(size) * 2]
    for a, b in graph:
        expected.append(expected[a] + expected[b])

    exe: Executable = codegen(lower(graph_module(graph, results)))
    found = VirtualMachine(exe, {"add": add})["main"](expected[0], expected[1])

    assert len(found) == len(results)
    for value, r in zip(found, results, strict=True):
        np.testing.assert_array_equal(value, expected[r])
