"""A block becomes a view of one node per class, and a chosen program becomes a block again."""

from collections.abc import Callable

import numpy as np

from relax_egraph.egraph.encoding.encode import encode
from relax_egraph.egraph.node import Node, call_node, leaf_node
from relax_egraph.egraph.readback.decode import decode
from relax_egraph.egraph.readback.fused import FusedFunctions
from relax_egraph.egraph.view import Choice, EClass, ENode, View
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    MatchCast,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    const,
)
from relax_egraph.ir.kernel import Input, Kernel, Step
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor

N = symbol("n")
M = symbol("m")
ROWS = tensor((N, 4), "float32")
ROWS_SHAPE = ShapeStructInfo((N, 4), 2)
BIAS = tensor((4,), "float32")


def text(value: Expr) -> str:
    match value:
        case Var(name=name) | GlobalVar(name=name):
            return name
        case Constant():
            return f"const{value.data.tolist()}"
        case ShapeExpr():
            return str(value.struct_info)
        case Tuple(fields=fields):
            return f"({', '.join(map(text, fields))})"
        case TupleGetItem(tuple_value=inner, index=index):
            return f"{text(inner)}[{index}]"
        case Call(op=op, args=args, attrs=attrs):
            name = op.name if isinstance(op, GlobalVar) else str(op)
            inside = [*map(text, args), *(f"{k}={v}" for k, v in attrs.items())]
            return f"{name}({', '.join(inside)})"
        case _:
            return type(value).__name__


def lines(bindings: tuple[Binding, ...]) -> list[str]:
    return [
        f"{b.var.name} = {'match_cast ' if isinstance(b, MatchCast) else ''}{text(b.value)}"
        for b in bindings
    ]


def block_of(
    build: Callable[[BlockBuilder], list[Var]], *params: Var
) -> tuple[tuple[Binding, ...], list[Var]]:
    """The bindings of a block, and the variables seen outside of it."""
    bb = BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            outputs = build(bb)
        bb.emit_func_output(outputs[0])
    function = bb.get()["main"]
    assert isinstance(function, Function)
    return function.body.blocks[0].bindings, outputs


def nodes(view: View) -> list[ENode]:
    return [node for c in view.classes.values() for node in c.nodes]


def as_it_stands(view: View) -> tuple[Choice, ...]:
    return tuple(
        Choice(c.nodes[0], c.nodes[0].operands, (class_id,)) for class_id, c in view.classes.items()
    )


def no_functions(function: Function, name: str) -> GlobalVar:
    raise AssertionError(f"{name} is not expected")


def test_an_elementwise_operand_of_smaller_shape_is_broadcast_explicitly() -> None:
    x, b = Var("x", ROWS), Var("b", BIAS)
    bindings, outputs = block_of(lambda bb: [bb.emit_output(call("add", x, b))], x, b)

    encoded = encode(bindings, outputs)

    assert nodes(encoded.view) == [
        leaf_node(0),
        leaf_node(1),
        Node("broadcast_to", (1, ROWS_SHAPE)),
        Node("add", (0, 2)),
    ]
    assert encoded.view.roots == (3,)
    assert encoded.view.classes[2].struct_info == ROWS


def test_attributes_are_canonical() -> None:
    x = Var("x", ROWS)

    def build(bb: BlockBuilder) -> list[Var]:
        y = bb.emit(call("permute_dims", x))
        return [bb.emit_output(call("sum", bb.emit(call("nn.softmax", y)), axis=-1))]

    bindings, outputs = block_of(build, x)

    assert nodes(encode(bindings, outputs).view)[1:] == [
        Node("permute_dims", (0,), (("axes", (1, 0)),)),
        Node("nn.softmax", (1,), (("axis", 1),)),
        Node("sum", (2,), (("axis", (1,)), ("keepdims", False))),
    ]


def test_a_median_is_a_tensor_where_its_axis_is_left_out() -> None:
    x = Var("x", BIAS)

    def build(bb: BlockBuilder) -> list[Var]:
        return [bb.emit_output(call("median", x))]

    bindings, outputs = block_of(build, x)
    view = encode(bindings, outputs).view
    pairs = list(zip(outputs, view.roots, strict=True))

    decoded = decode(view, as_it_stands(view), pairs, {}, FusedFunctions(no_functions))

    assert [v.struct_info for v in view.classes.values()] == [BIAS, tensor((), "float32")]
    assert lines(decoded) == ["gv = R.median(x)"]


def test_equal_calls_of_packed_functions_are_one_class() -> None:
    x = Var("x", ROWS)

    def build(bb: BlockBuilder) -> list[Var]:
        twice = [bb.emit(call_packed("f", [x], [ROWS], pure=True)) for _ in range(2)]
        sums = [bb.emit(call("add", t, x)) for t in twice]
        return [bb.emit_output(call("multiply", *sums))]

    bindings, outputs = block_of(build, x)

    assert nodes(encode(bindings, outputs).view) == [
        leaf_node(0),
        call_node("call_pure_packed", "f", (0,), ShapeStructInfo(ROWS.dims, 2), "float32"),
        Node("add", (1, 0)),
        Node("multiply", (2, 2)),
    ]


def test_what_depends_on_constants_only_is_const_and_a_scalar_is_known() -> None:
    x = Var("x", ROWS)

    def build(bb: BlockBuilder) -> list[Var]:
        w = bb.emit(call("permute_dims", const(np.ones((4, 4), np.float32))))
        y = bb.emit(call("matmul", x, w))
        return [bb.emit_output(call("multiply", y, const(0.5)))]

    bindings, outputs = block_of(build, x)

    view = encode(bindings, outputs).view

    assert [(c.nodes[0].op, c.is_const, c.scalar) for c in view.classes.values()] == [
        ("leaf", True, None),
        ("permute_dims", True, None),
        ("leaf", False, None),
        ("matmul", False, None),
        ("leaf", True, 0.5),
        ("broadcast_to", False, 0.5),
        ("multiply", False, None),
    ]


def test_a_field_of_a_tuple_of_the_block_is_the_value_itself() -> None:
    x, b = Var("x", ROWS), Var("b", BIAS)

    def build(bb: BlockBuilder) -> list[Var]:
        y = bb.emit(call("add", x, b))
        pair = bb.emit(Tuple((y, x)))
        first = bb.emit(TupleGetItem(pair, 0))
        z = bb.emit(call("reshape", first, ShapeExpr((N * 4,))))
        return [bb.emit_output(call("nn.relu", z)), bb.emit_output(y)]

    bindings, outputs = block_of(build, x, b)
    encoded = encode(bindings, outputs)
    pairs = [(v, encoded.origin[v]) for v in outputs]
    names = {encoded.origin[b.var]: b.var.name for b in bindings}

    decoded = decode(
        encoded.view, as_it_stands(encoded.view), pairs, names, FusedFunctions(no_functions)
    )

    assert lines(decoded) == [
        "gv1 = R.add(x, b)",
        "lv3 = R.reshape(gv1, R.Shape((n * 4,)))",
        "gv = R.nn.relu(lv3)",
    ]


def test_a_value_comes_after_the_match_cast_that_binds_its_symbol() -> None:
    x, y = Var("x", tensor(None, "float32", 1)), Var("y", tensor(None, "float32", 1))
    vector = tensor((M,), "float32")

    def build(bb: BlockBuilder) -> list[Var]:
        cast = bb.emit_match_cast(x, vector)
        return [
            bb.emit_output(call("exp", cast)),
            bb.emit_output(call_packed("f", [y], [vector], pure=True)),
        ]

    bindings, outputs = block_of(build, x, y)
    encoded = encode(bindings, outputs)
    pairs = [(v, encoded.origin[v]) for v in reversed(outputs)]

    decoded = decode(
        View(
            encoded.view.classes,
            tuple(c for _, c in pairs),
            encoded.view.leaves,
            encoded.view.opaque,
        ),
        as_it_stands(encoded.view),
        pairs,
        {},
        FusedFunctions(no_functions),
    )

    assert lines(decoded) == [
        "lv = match_cast x",
        "gv1 = R.call_pure_packed(ExternFunc, y)",
        "gv = R.exp(lv)",
    ]


def bias_relu() -> Kernel:
    """``relu(x + broadcast_to(b))``."""
    steps = (
        Step(OPS["broadcast_to"], (1, ROWS_SHAPE), (), ROWS),
        Step(OPS["add"], (0, 2), (), ROWS),
        Step(OPS["nn.relu"], (3,), (), ROWS),
    )
    return Kernel((Input(ROWS), Input(BIAS)), steps, (4,))


def decode_kernels(*kernels: Kernel) -> tuple[list[str], dict[str, Function]]:
    """Decode kernels over the leaves x and b, each with one output."""
    x, b = Var("x", ROWS), Var("b", BIAS)
    leaves = {0: leaf_node(0), 1: leaf_node(1)}
    classes = {
        **{k: encoded_class(node, x if k == 0 else b) for k, node in leaves.items()},
        **{2 + i: encoded_class(Node("store"), x) for i in range(len(kernels))},
    }
    view = View(classes, tuple(range(2, 2 + len(kernels))), (x, b))
    program = (
        *(Choice(node, (), (k,)) for k, node in leaves.items()),
        *(Choice(k, (0, 1)[: len(k.inputs)], (2 + i,)) for i, k in enumerate(kernels)),
    )
    functions: dict[str, Function] = {}

    def add(function: Function, name: str) -> GlobalVar:
        functions[name] = function
        return GlobalVar(name)

    outputs = [(Var(f"gv{i}", ROWS), 2 + i) for i in range(len(kernels))]
    return lines(decode(view, program, outputs, {}, FusedFunctions(add))), functions


def encoded_class(node: ENode, like: Var) -> EClass:
    info = like.struct_info
    assert isinstance(info, TensorStructInfo)
    return EClass("tensor", (node,), info)


def test_a_kernel_of_several_operators_becomes_one_shared_function_without_broadcasts() -> None:
    main, functions = decode_kernels(bias_relu(), bias_relu())

    assert main == ["gv0 = fused_add_relu(x, b)", "gv1 = fused_add_relu(x, b)"]
    assert list(functions) == ["fused_add_relu"]
    function = functions["fused_add_relu"]
    assert lines(function.body.blocks[0].bindings) == ["lv = R.add(x, b)", "gv = R.nn.relu(lv)"]
    assert dict(function.attrs) == {"primitive": True, "private": True}


def test_a_kernel_of_one_operator_becomes_its_call() -> None:
    steps = bias_relu().steps[:2]

    main, functions = decode_kernels(Kernel((Input(ROWS), Input(BIAS)), steps, (3,)))

    assert main == ["gv0 = R.add(x, b)"]
    assert functions == {}


def test_a_broadcast_that_the_operator_would_not_make_by_itself_stays() -> None:
    steps = (
        Step(OPS["broadcast_to"], (0, ROWS_SHAPE), (), ROWS),
        Step(OPS["exp"], (1,), (), ROWS),
    )
    kernel = Kernel((Input(BIAS),), steps, (2,))

    main, functions = decode_kernels(kernel)

    assert main == ["gv0 = fused_broadcast_to_exp(x, R.Shape((n,)))"]
    assert lines(functions["fused_broadcast_to_exp"].body.blocks[0].bindings) == [
        "lv = R.broadcast_to(x, R.Shape((n, 4)))",
        "gv = R.exp(lv)",
    ]


def test_a_known_scalar_is_a_constant_inside_the_function() -> None:
    steps = (
        Step(OPS["broadcast_to"], (1, ROWS_SHAPE), (), ROWS),
        Step(OPS["multiply"], (0, 2), (), ROWS),
        Step(OPS["exp"], (3,), (), ROWS),
    )
    kernel = Kernel((Input(ROWS), Input(tensor((), "float32"), scalar=0.5)), steps, (4,))

    main, functions = decode_kernels(kernel)

    assert main == ["gv0 = fused_multiply_exp(x)"]
    assert lines(functions["fused_multiply_exp"].body.blocks[0].bindings) == [
        "lv = R.multiply(x, const0.5)",
        "gv = R.exp(lv)",
    ]
