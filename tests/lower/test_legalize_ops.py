"""Operators in a module become calls of loop functions, builtins and packed functions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import IllTyped, Span
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed
from relax_egraph.ir.expr import (
    Attr,
    Call,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    Var,
    VarBinding,
    const,
    shape,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.run_time import run_time_attrs, run_time_call
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, tensor
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import PrimFunc

n, m = dims.symbol("n"), dims.symbol("m")

UNKNOWN = TensorStructInfo(None, "float32", 2)


def f32(*extents: dims.Dim) -> TensorStructInfo:
    return tensor(tuple(dims.canonical(e) for e in extents), "float32")


def module(params: list[Var], *values: Expr, attrs: dict[str, Attr] | None = None) -> IRModule:
    """A module of ``main``: each value bound in one dataflow block, the last returned."""
    bb = BlockBuilder()
    with bb.function("main", params, attrs):
        with bb.dataflow():
            for value in values[:-1]:
                bb.emit(value)
            out = bb.emit_output(values[-1])
        bb.emit_func_output(out)
    return bb.get()


def values_of(legal: IRModule) -> list[Expr]:
    main = legal["main"]
    assert isinstance(main, Function)
    bindings = main.body.blocks[0].bindings
    return [b.value for b in bindings if isinstance(b, VarBinding)]


def described(value: Expr) -> tuple[str, list[Any]]:
    """The name of what is called, and the operands."""
    assert isinstance(value, Call)
    callee, *operands = value.args
    assert isinstance(callee, GlobalVar | ExternFunc)
    flat: list[Any] = []
    for operand in operands:
        flat.extend(operand.fields if isinstance(operand, Tuple) else [operand])
    return callee.name, flat


def legalized(x: StructInfo, name: str, *rest: Expr, **attrs: Attr) -> tuple[str, list[Any]]:
    """What ``R.name(x, rest)`` becomes; `x` itself is left out of the operands."""
    operand = Var("x", x)
    legal = legalize_ops(module([operand], call(name, operand, *rest, **attrs)))
    callee, operands = described(values_of(legal)[0])
    assert operands[0] is operand
    return callee, operands[1:]


def test_operators_become_calls_of_loop_functions() -> None:
    x, y = Var("x", f32(n, 4)), Var("y", f32(4))

    legal = legalize_ops(module([x, y], call("add", x, y)))

    made = values_of(legal)[0]
    assert described(made) == ("add", [x, y])
    assert made.struct_info == f32(n, 4)
    function = legal["add"]
    assert isinstance(function, PrimFunc)
    assert [p.name for p in function.params] == ["x", "y", "add"]
    a, b = np.ones((3, 4), np.float32), np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(interpret(function, [a, b])[0], a + b)


def test_elementwise_functions_have_what_is_passed_twice_once() -> None:
    x, y = Var("x", f32(4)), Var("y", f32(4))
    calls = [call("ewise_fma", x, y, x), call("ewise_fma", y, x, y), call("ewise_fma", x, x, y)]

    legal = legalize_ops(module([x, y], *calls))

    first, second, third = values_of(legal)
    assert described(first) == ("ewise_fma", [x, y])
    assert described(second) == ("ewise_fma", [y, x])
    assert described(third) == ("ewise_fma1", [x, y])
    a, b = np.arange(4, dtype=np.float32), np.arange(5, 9, dtype=np.float32)
    for name, expected in (("ewise_fma", a * b + a), ("ewise_fma1", a * a + b)):
        function = legal[name]
        assert isinstance(function, PrimFunc)
        np.testing.assert_array_equal(interpret(function, [a, b])[0], expected)


def test_functions_are_shared_and_named_after_their_operator() -> None:
    x, y = Var("x", f32(n, 4)), Var("y", f32(m, 4))
    calls = [
        call("nn.relu", x),
        call("nn.relu", y),
        call("nn.relu", Var("z", f32(n))),
        call("nn.relu", x),
    ]

    legal = legalize_ops(module([x, y], *calls))

    assert [described(v)[0] for v in values_of(legal)] == ["relu", "relu", "relu1", "relu"]
    assert list(legal.functions) == ["main", "relu", "relu1"]


def test_calls_of_the_same_loops_keep_their_operands_and_places() -> None:
    x, y, z = (Var(name, f32(n, 4)) for name in "xyz")
    joined = [(x, y), (z, x), (x, y, z)]
    places = [Span("model.py", line, 1) for line in (1, 2, 3)]
    calls = [
        replace(call("concat", Tuple(fields)), span=place)
        for fields, place in zip(joined, places, strict=True)
    ]

    values = values_of(legalize_ops(module([x, y, z], *calls)))

    names, operands = zip(*map(described, values), strict=True)
    assert names == ("concat", "concat", "concat1")
    assert operands == tuple(map(list, joined))
    assert [v.span for v in values if isinstance(v, Call)] == places


def test_numbers_that_differ_in_their_sign_have_loops_of_their_own() -> None:
    x, one = Var("x", tensor((n,), "int64")), PrimValue(1.0, "float32")
    calls = [call("one_hot", x, one, PrimValue(off, "float32"), depth=4) for off in (0.0, -0.0)]

    names = [described(v)[0] for v in values_of(legalize_ops(module([x], *calls)))]

    assert names == ["one_hot", "one_hot1"]


def test_a_function_of_the_module_keeps_its_name() -> None:
    x = Var("x", f32(n))
    bb = BlockBuilder(module([x], call("exp", x)))
    with bb.function("exp", [x]):
        bb.emit_func_output(x)

    legal = legalize_ops(bb.get())

    assert list(legal.functions) == ["main", "exp", "exp1"]
    assert described(values_of(legal)[0])[0] == "exp1"


def test_types_of_later_values_stay() -> None:
    x = Var("x", f32(n, 4))
    before = module([x], call("exp", x))
    main = before["main"]
    assert isinstance(main, Function)

    after = legalize_ops(before)["main"]

    assert isinstance(after, Function)
    assert after.params == main.params
    assert after.body.body is main.body.body
    assert after.ret_struct_info == main.ret_struct_info


@pytest.mark.parametrize(
    ("name", "x", "args", "attrs", "result"),
    [
        ("flatten", f32(n, 4), (), {}, (n * 4,)),
        ("reshape", f32(n, 4), (shape([n, 2, 2]),), {}, (n, 2, 2)),
        ("expand_dims", f32(n, 4), (), {"axis": (0,)}, (1, n, 4)),
        ("squeeze", f32(n, 1), (), {"axis": (-1,)}, (n,)),
    ],
)
def test_views_share_memory(
    name: str,
    x: TensorStructInfo,
    args: tuple[Expr, ...],
    attrs: dict[str, Attr],
    result: tuple[dims.Dim, ...],
) -> None:
    made = legalized(x, name, *args, **attrs)

    assert made == ("vm.builtin.reshape", [shape(result)])


def test_a_shape_that_a_variable_holds_is_known() -> None:
    to = Var("to", ShapeStructInfo((n, 3), 2))

    assert legalized(f32(n, 3), "reshape", to) == ("vm.builtin.reshape", [shape([n, 3])])
    assert legalized(f32(3), "broadcast_to", to) == ("broadcast_to", [])


def test_the_shape_of_a_tensor_is_a_builtin() -> None:
    assert legalized(UNKNOWN, "shape_of") == ("vm.builtin.shape_of", [])


NONE = StringImm("None")

RUN_TIME: list[tuple[str, StructInfo, tuple[Expr, ...], dict[str, Attr], list[Expr]]] = [
    ("unique", f32(n), (), {}, [*(PrimValue(k == 0, "bool") for k in range(4)), NONE]),
    ("exp", UNKNOWN, (), {}, []),
    ("nn.softmax", UNKNOWN, (), {}, [PrimValue(-1)]),
    ("sum", UNKNOWN, (), {}, [NONE, PrimValue(False, "bool")]),
    ("sum", UNKNOWN, (), {"axis": (-1,)}, [ShapeExpr((-1,)), PrimValue(False, "bool")]),
    ("astype", UNKNOWN, (), {"dtype": "int32"}, [StringImm("int32")]),
    ("exp", TensorStructInfo(shape([n]), None, 1), (), {}, []),
    ("squeeze", f32(n, 4), (), {"axis": (0,)}, [ShapeExpr((0,))]),
]


@pytest.mark.parametrize(("name", "x", "args", "attrs", "passed"), RUN_TIME)
def test_what_is_known_only_at_run_time_is_a_packed_function(
    name: str,
    x: StructInfo,
    args: tuple[Expr, ...],
    attrs: dict[str, Attr],
    passed: list[Expr],
) -> None:
    made = legalized(x, name, *args, **attrs)

    assert made == (f"relax.run.{name}", passed)


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [("add", f32(n), f32(m)), ("matmul", f32(2, n), f32(m, 2)), ("add", f32(n), UNKNOWN)],
)
def test_extents_that_may_differ_are_decided_at_run_time(
    name: str, x: StructInfo, y: StructInfo
) -> None:
    other = Var("y", y)

    assert legalized(x, name, other) == (f"relax.run.{name}", [other])


@pytest.mark.parametrize(
    ("name", "callee"),
    [("reshape", "vm.builtin.reshape"), ("broadcast_to", "relax.run.broadcast_to")],
)
def test_a_target_shape_that_may_not_fit_is_tried_at_run_time(name: str, callee: str) -> None:
    target = shape([m, 2])

    assert legalized(f32(n, 2), name, target) == (callee, [target])


def test_the_result_of_a_packed_function_has_the_operator_s_type() -> None:
    x = Var("x", f32(n))

    made = values_of(legalize_ops(module([x], call("unique", x))))[0]

    assert made.struct_info == TensorStructInfo(None, "float32", 1)


ATTRS: list[tuple[str, dict[str, Attr]]] = [
    ("sum", {"axis": None, "keepdims": True}),
    ("sum", {"axis": (0, -1), "keepdims": False}),
    ("nn.softmax", {"axis": -2}),
    ("astype", {"dtype": "bool"}),
    ("permute_dims", {"axes": None}),
]


@pytest.mark.parametrize(("name", "attrs"), ATTRS)
def test_attributes_survive_the_passage_to_run_time(name: str, attrs: dict[str, Attr]) -> None:
    op = OPS[name]
    passed = run_time_call(op, (Var("x", UNKNOWN),), attrs, UNKNOWN).args[2:]
    at_run_time = [
        a.value if isinstance(a, PrimValue | StringImm) else a.values
        for a in passed
        if isinstance(a, PrimValue | StringImm | ShapeExpr)
    ]

    assert run_time_attrs(op, at_run_time) == complete_attrs(op, attrs)


def test_a_packed_function_must_get_every_attribute() -> None:
    with pytest.raises(IllTyped) as raised:
        run_time_attrs(OPS["sum"], [True])

    assert str(raised.value) == "R.sum has 2 attributes, got 1 values"


def test_primitive_functions_and_intrinsics_stay() -> None:
    x = Var("x", f32(n))
    inside = module([x], call("exp", x), attrs={"primitive": True})
    outside = module([x], call_packed("f", [x], [f32(n)], pure=True))

    assert legalize_ops(inside)["main"] is inside["main"]
    assert legalize_ops(outside)["main"] is outside["main"]


def test_operators_in_branches_are_replaced() -> None:
    x, cond = Var("x", f32(n)), Var("cond", tensor((), "bool"))
    bb = BlockBuilder()
    with bb.function("main", [x, cond]):
        branch = If(cond, SeqExpr((), call("exp", x)), SeqExpr((), call("log", x)), f32(n))
        bb.emit_func_output(bb.emit(branch))

    legal = legalize_ops(bb.get())

    assert sorted(legal.functions) == ["exp", "log", "main"]
    value = values_of(legal)[0]
    assert isinstance(value, If)
    block = value.true_branch.blocks[0].bindings[0]
    assert isinstance(block, VarBinding)
    assert described(block.value) == ("exp", [x])


def test_constants_are_operands() -> None:
    one = const(1.0)

    assert legalized(f32(n), "add", one) == ("add", [one])
