"""Symbolic dimensions become slots of a shape heap."""

import re

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllFormed, IllTyped, NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Expr,
    Function,
    If,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    Var,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.analyses.needed_dims import may_fail
from relax_egraph.passes.vm_shape_lower import vm_shape_lower, without_symbols
from tests.support.lowered import f32, k, m, n, text


def returning(result: Expr, *params: Var) -> IRModule:
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(result)
    return bb.get()


def branch(result: Expr) -> SeqExpr:
    """A branch that binds `result`."""
    bb = BlockBuilder()
    with bb.function("branch"):
        bb.emit_func_output(bb.emit(result, "b"))
    function = bb.get()["branch"]
    assert isinstance(function, Function)
    return function.body


def body(module: IRModule) -> list[str]:
    return text(vm_shape_lower(module)).splitlines()[1:]


def test_parameters_are_checked_at_entry_and_bind_their_symbols() -> None:
    before = returning(ShapeExpr((n, 4)), Var("x", f32(n, 4)), Var("y", f32(4, n)))

    after = vm_shape_lower(before)

    assert not find_ill_formed(after)
    assert text(after) == (
        'impure (x: R.Tensor((n, 4), "float32"), y: R.Tensor((4, n), "float32")) '
        "-> R.Shape((n, 4))\n"
        "  block\n"
        "    shape_heap: R.Object = R.vm.alloc_shape_heap(1)\n"
        "    _: R.Tuple() = R.vm.check_tensor_info("
        "x, 'main: parameter x', 'R.Tensor((n, 4), \"float32\")', 2, 'float32')\n"
        "    _1: R.Tuple() = R.vm.match_shape("
        "x, shape_heap, 'main: parameter x', 'R.Tensor((n, 4), \"float32\")', 'n -> @0', '4')\n"
        "    _2: R.Tuple() = R.vm.check_tensor_info("
        "y, 'main: parameter y', 'R.Tensor((4, n), \"float32\")', 2, 'float32')\n"
        "    _3: R.Tuple() = R.vm.match_shape("
        "y, shape_heap, 'main: parameter y', 'R.Tensor((4, n), \"float32\")', '4', 'n == @0')\n"
        "    shape: R.Shape(ndim=2) = R.vm.make_shape(shape_heap, '@0', '4')\n"
        "  return shape"
    )


def test_computed_extents_are_compared_after_all_symbols_are_bound() -> None:
    before = returning(Tuple(()), Var("x", f32(n * 4 + m)), Var("y", f32(m, n)))

    lines = body(before)

    assert lines == [
        "  block",
        "    shape_heap: R.Object = R.vm.alloc_shape_heap(3)",
        "    _: R.Tuple() = R.vm.check_tensor_info("
        "x, 'main: parameter x', 'R.Tensor((m + n * 4,), \"float32\")', 1, 'float32')",
        "    _1: R.Tuple() = R.vm.check_tensor_info("
        "y, 'main: parameter y', 'R.Tensor((m, n), \"float32\")', 2, 'float32')",
        "    _2: R.Tuple() = R.vm.match_shape(y, shape_heap, "
        "'main: parameter y', 'R.Tensor((m, n), \"float32\")', 'm -> @0', 'n -> @1')",
        "    _3: R.Tuple() = R.vm.compute_shapes(shape_heap, 2, '@0 + @1 * 4')",
        "    _4: R.Tuple() = R.vm.match_shape(x, shape_heap, "
        "'main: parameter x', 'R.Tensor((m + n * 4,), \"float32\")', 'm + n * 4 == @2')",
        "  return ()",
    ]


def test_parameters_of_every_kind_are_checked() -> None:
    before = returning(
        Tuple(()),
        Var("t", TupleStructInfo((f32(n), tensor(None, None, 2)))),
        Var("s", ShapeStructInfo((n, 3), 2)),
        Var("u", ShapeStructInfo(None, 2)),
        Var("i", PrimStructInfo("int64", m)),
        Var("j", PrimStructInfo("int64")),
        Var("o", ObjectStructInfo()),
    )

    lines = body(before)

    assert lines == [
        "  block",
        "    shape_heap: R.Object = R.vm.alloc_shape_heap(2)",
        "    _: R.Tuple() = R.vm.check_tuple_info(t, 'main: parameter t', "
        "'R.Tuple(R.Tensor((n,), \"float32\"), R.Tensor(ndim=2))', 2)",
        '    gv: R.Tensor((n,), "float32") = t[0]',
        "    _1: R.Tuple() = R.vm.check_tensor_info(gv, "
        "'main: parameter t, field 0', 'R.Tensor((n,), \"float32\")', 1, 'float32')",
        "    _2: R.Tuple() = R.vm.match_shape(gv, shape_heap, "
        "'main: parameter t, field 0', 'R.Tensor((n,), \"float32\")', 'n -> @0')",
        "    gv1: R.Tensor(ndim=2) = t[1]",
        "    _3: R.Tuple() = R.vm.check_tensor_info(gv1, "
        "'main: parameter t, field 1', 'R.Tensor(ndim=2)', 2, '')",
        "    _4: R.Tuple() = R.vm.check_shape_info(s, 'main: parameter s', 'R.Shape((n, 3))', 2)",
        "    _5: R.Tuple() = R.vm.match_shape("
        "s, shape_heap, 'main: parameter s', 'R.Shape((n, 3))', 'n == @0', '3')",
        "    _6: R.Tuple() = R.vm.check_shape_info(u, 'main: parameter u', 'R.Shape(ndim=2)', 2)",
        "    _7: R.Tuple() = R.vm.match_prim("
        "i, shape_heap, 'main: parameter i', 'R.Prim(value=m)', 'm -> @1')",
        "    _8: R.Tuple() = R.vm.match_prim("
        "j, shape_heap, 'main: parameter j', 'R.Prim(\"int64\")', '_')",
        "  return ()",
    ]


def test_a_function_without_shapes_has_no_heap() -> None:
    before = returning(Tuple(()), Var("x", tensor(None, None)), Var("o", ObjectStructInfo()))

    lines = body(before)

    assert lines == [
        "  block",
        "    _: R.Tuple() = R.vm.check_tensor_info(x, 'main: parameter x', 'R.Tensor()', -1, '')",
        "  return ()",
    ]


def test_match_cast_binds_new_symbols_and_compares_known_ones() -> None:
    bb = BlockBuilder()
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        u = bb.emit(call("unique", x), "u")
        c = bb.emit_match_cast(u, f32(m), "c")
        d = bb.emit_match_cast(c, f32(m), "d")
        e = bb.emit_match_cast(d, tensor(None, "float32", 1), "e")
        bb.emit_func_output(Tuple((e, ShapeExpr((m,)))))

    lines = body(bb.get())

    assert lines[4:] == [
        '    u: R.Tensor(dtype="float32", ndim=1) = R.unique(x)',
        "    _2: R.Tuple() = R.vm.check_tensor_info("
        "u, 'main: match_cast c', 'R.Tensor((m,), \"float32\")', 1, 'float32')",
        "    _3: R.Tuple() = R.vm.match_shape(u, shape_heap, "
        "'main: match_cast c', 'R.Tensor((m,), \"float32\")', 'm -> @1')",
        '    c: R.Tensor(dtype="float32", ndim=1) = u',
        "    _4: R.Tuple() = R.vm.check_tensor_info("
        "c, 'main: match_cast d', 'R.Tensor((m,), \"float32\")', 1, 'float32')",
        "    _5: R.Tuple() = R.vm.match_shape(c, shape_heap, "
        "'main: match_cast d', 'R.Tensor((m,), \"float32\")', 'm == @1')",
        '    d: R.Tensor(dtype="float32", ndim=1) = c',
        "    _6: R.Tuple() = R.vm.check_tensor_info(d, "
        "'main: match_cast e', 'R.Tensor(dtype=\"float32\", ndim=1)', 1, 'float32')",
        '    e: R.Tensor(dtype="float32", ndim=1) = d',
        "    shape: R.Shape(ndim=1) = R.vm.make_shape(shape_heap, '@1')",
        "  return (e, shape)",
    ]


def test_only_symbols_of_parameters_stay_in_the_signature() -> None:
    bb = BlockBuilder()
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        c = bb.emit_match_cast(bb.emit(call("unique", x)), f32(m))
        bb.emit_func_output(Tuple((x, c)))

    after = vm_shape_lower(bb.get())

    assert not find_ill_formed(after)
    assert text(after).splitlines()[0] == (
        'impure (x: R.Tensor((n,), "float32")) '
        '-> R.Tuple(R.Tensor((n,), "float32"), R.Tensor(dtype="float32", ndim=1))'
    )


def test_a_dimension_is_computed_and_loaded_once() -> None:
    half, least = dims.floordiv(n, 2), dims.minimum(n, m)
    args = [PrimValue(half), ShapeExpr((half, least)), PrimValue(half), ShapeExpr((half, least))]
    bb = BlockBuilder()
    with bb.function("main", [Var("x", f32(n, m))]):
        a = bb.emit(call_packed("f", args[:2], [ObjectStructInfo()]), "a")
        b = bb.emit(call_packed("f", args[2:], [ObjectStructInfo()]), "b")
        bb.emit_func_output(Tuple((a, b)))

    lines = body(bb.get())

    assert lines[4:] == [
        "    _2: R.Tuple() = R.vm.compute_shapes(shape_heap, 2, '@0 // 2', 3, 'min(@0, @1)')",
        '    dim: R.Prim("int64") = R.vm.load_prim(shape_heap, 2)',
        "    shape: R.Shape(ndim=2) = R.vm.make_shape(shape_heap, '@2', '@3')",
        '    a: R.Object = R.call_packed("f", dim, shape, R.Object)',
        '    b: R.Object = R.call_packed("f", dim, shape, R.Object)',
        "  return (a, b)",
    ]


@pytest.mark.parametrize(
    ("dim", "fails"),
    [
        (n * m + 4, False),
        (dims.floordiv(n + m, 2), False),
        (dims.mod(n, 8), False),
        (dims.floordiv(n, m + 1), False),
        (dims.floordiv(n, m), True),
        (dims.mod(8, n * m), True),
        (dims.minimum(dims.floordiv(n, 3 * m), 5), True),
    ],
)
def test_a_dimension_fails_only_if_it_may_divide_by_zero(dim: Dim, fails: bool) -> None:
    assert may_fail(dim) is fails


def test_the_result_of_a_packed_function_is_checked() -> None:
    bb = BlockBuilder()
    with bb.function("main", [x := Var("x", f32(n))]):
        bb.emit_func_output(bb.emit(call_packed("f", [x], [f32(n * 2, m)]), "r"))

    lines = body(bb.get())

    said = "'main: the result of 'f'', 'R.Tensor((n * 2, m), \"float32\")'"
    assert lines[4:] == [
        '    r: R.Tensor(dtype="float32", ndim=2) = '
        'R.call_packed("f", x, R.Tensor(dtype="float32", ndim=2))',
        f"    _2: R.Tuple() = R.vm.check_tensor_info(r, {said}, 2, 'float32')",
        f"    _3: R.Tuple() = R.vm.match_shape(r, shape_heap, {said}, '_', 'm -> @1')",
        "    _4: R.Tuple() = R.vm.compute_shapes(shape_heap, 2, '@0 * 2')",
        f"    _5: R.Tuple() = R.vm.match_shape(r, shape_heap, {said}, 'n * 2 == @2', '_')",
        "  return r",
    ]


def test_what_a_branch_computes_is_not_known_after_it() -> None:
    """What is needed in any case is computed first, what may fail where it is needed."""
    twice, thrice = (
        call_packed("f", [PrimValue(n * k), PrimValue(n * 8)], [ObjectStructInfo()]) for k in (2, 3)
    )
    cond = Var("cond", tensor((), "bool"))
    fails = PrimValue(dims.floordiv(8, n))
    bb = BlockBuilder()
    with bb.function("main", [Var("x", f32(n)), cond]):
        r = bb.emit(If(cond, branch(twice), branch(thrice), ObjectStructInfo()), "r")
        bb.emit_func_output(Tuple((r, PrimValue(n * 2), PrimValue(n * 8), fails)))

    lines = body(bb.get())

    assert lines[5:] == [
        "    _3: R.Tuple() = R.vm.compute_shapes(shape_heap, 1, '@0 * 2', 2, '@0 * 8')",
        "    r: R.Object = if cond",
        "      block",
        '        dim: R.Prim("int64") = R.vm.load_prim(shape_heap, 1)',
        '        dim1: R.Prim("int64") = R.vm.load_prim(shape_heap, 2)',
        '        b: R.Object = R.call_packed("f", dim, dim1, R.Object)',
        "      return b",
        "    else",
        "      block",
        "        _4: R.Tuple() = R.vm.compute_shapes(shape_heap, 3, '@0 * 3')",
        '        dim2: R.Prim("int64") = R.vm.load_prim(shape_heap, 3)',
        '        dim3: R.Prim("int64") = R.vm.load_prim(shape_heap, 2)',
        '        b: R.Object = R.call_packed("f", dim2, dim3, R.Object)',
        "      return b",
        '    dim4: R.Prim("int64") = R.vm.load_prim(shape_heap, 1)',
        '    dim5: R.Prim("int64") = R.vm.load_prim(shape_heap, 2)',
        "    _5: R.Tuple() = R.vm.compute_shapes(shape_heap, 4, '8 // @0')",
        '    dim6: R.Prim("int64") = R.vm.load_prim(shape_heap, 4)',
        "  return (r, dim4, dim5, dim6)",
    ]


def test_a_dimension_that_nothing_binds_is_refused() -> None:
    before = returning(ShapeExpr((k,)), Var("x", f32(n)))

    with pytest.raises(IllFormed) as error:
        vm_shape_lower(before)

    assert str(error.value) == (
        "main: the dimension k is not known: "
        "no parameter and no match_cast before binds k by itself"
    )


def test_a_parameter_whose_symbol_nothing_binds_by_itself_is_refused() -> None:
    before = returning(Tuple(()), Var("x", f32(n * 4)))

    with pytest.raises(IllFormed) as error:
        vm_shape_lower(before)

    assert str(error.value) == (
        "main: parameter x: the dimension n * 4 is not known: "
        "no parameter and no match_cast before binds n by itself"
    )


def test_a_local_function_is_refused() -> None:
    bb = BlockBuilder()
    with bb.function("main"):
        local = Function((), SeqExpr((), Tuple(())), TupleStructInfo(()))
        bb.emit_func_output(bb.emit(local, "f"))

    with pytest.raises(NotLowerable) as error:
        vm_shape_lower(bb.get())

    assert str(error.value) == "function 'main' has a local function inside: run lambda_lift first"


def test_struct_info_without_symbols_keeps_what_is_a_number() -> None:
    info = FuncStructInfo(
        (f32(n, 4), f32(3, 4), ShapeStructInfo((n,), 1), ShapeStructInfo((2,), 1)),
        TupleStructInfo((PrimStructInfo("int64", n), PrimStructInfo("int64", 3))),
    )

    erased = without_symbols(info)

    assert erased == FuncStructInfo(
        (
            tensor(None, "float32", 2),
            f32(3, 4),
            ShapeStructInfo(None, 1),
            ShapeStructInfo((2,), 1),
        ),
        TupleStructInfo((PrimStructInfo("int64"), PrimStructInfo("int64", 3))),
    )


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        (
            "vm.compute_shapes",
            [Tuple(()), PrimValue(0)],
            "R.vm.compute_shapes takes 3 operands, got 2",
        ),
        (
            "vm.load_prim",
            [Tuple(()), StringImm("0")],
            "R.vm.load_prim: operand 1 is R.Object, needs a number",
        ),
        (
            "vm.make_shape",
            [Tuple(()), PrimValue(3)],
            "R.vm.make_shape: operand 1 is R.Prim(value=3), needs a string",
        ),
    ],
)
def test_heap_intrinsics_refuse_other_operands(name: str, args: list[Expr], message: str) -> None:
    with pytest.raises(IllTyped) as error:
        call(name, *args)

    assert str(error.value) == message


def test_the_operands_of_a_long_dimension_have_slots_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sizes of arenas are long maxima; the machine reads texts up to a length only."""
    monkeypatch.setattr("relax_egraph.passes.shape_heap._LONG", 20)
    longest = dims.maximum(n * n + m, 5, n * dims.minimum(m * 3 + 1, n * 7, k * 5))
    module = returning(ShapeExpr((longest,)), Var("x", f32(n, m, k)))
    executable = build(module)

    computed = next(line for line in body(module) if "compute_shapes" in line)
    assert re.findall(r"(\d+), '([^']*)'", computed) == [
        *(("3", "@0 * @0 + @1"), ("4", "@2 * 5"), ("5", "@0 * 7"), ("6", "@1 * 3 + 1")),
        *(("7", "min(@4, @5, @6)"), ("8", "@0 * @7"), ("9", "max(5, @3, @8)")),
    ]
    for sizes in ((0, 3, 2), (1, 1, 1), (2, 3, 5), (5, 9, 2)):
        expected = dims.evaluate(longest, dict(zip("nmk", sizes, strict=True)))
        for engine in ("native", "interpreter"):
            x = np.zeros(sizes, np.float32)
            assert VirtualMachine(executable, engine=engine)["main"](x) == (expected,)
