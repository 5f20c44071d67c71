"""Broken and hostile models are refused by one clear error: no crash, no hang, no gigabytes."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import relax_egraph as rx
from bench.resident import peak_resident, resident
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.frontends.onnx import model as limits
from tests.support.onnx_models import Array, in_words, model, node, one, refusal, value

HUGE = 2**63 - 1
FLOATS = onnx.AttributeProto.FLOAT


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """No test makes the process grow by much."""
    if sys.platform != "linux":
        yield
        return
    before = resident()
    yield
    assert peak_resident() - before < 512 << 20


# --- graphs -----------------------------------------------------------------------------


def test_nodes_in_a_circle_and_out_of_order() -> None:
    nodes = [node("Add", "x b", "a", name="first"), node("Relu", "a", "b", name="second")]
    proto = model(nodes, [value("x", ["n"])], [value("b", ["n"])])

    assert in_words(refusal(proto)) == (
        "first (Add, opset 21): its operand 'b' is not the output of an earlier node"
    )


def test_what_a_branch_lacks_is_said_where_it_is_lost() -> None:
    then = helper.make_graph([node("Relu", "a", "t")], "then", [], [value("t", [None])])
    other = helper.make_graph([node("Abs", "a", "e")], "else", [], [value("e", [None])])
    nodes = [
        node("Mystery", "x", "a", name="first"),
        node("If", "c", "y", then_branch=then, else_branch=other),
    ]
    proto = model(nodes, [value("x", ["n"]), value("c", [], "bool")], [value("y", ["n"])])

    assert in_words(refusal(proto)) == "first (Mystery, opset 21): opset 21 has no operator Mystery"


def test_one_name_for_two() -> None:
    nodes = [node("Relu", "x", "y"), node("Abs", "x", "y", name="again")]
    two_nodes = model(nodes, [value("x", ["n"])], [value("y", ["n"])])
    two_inputs = model([node("Relu", "x", "y")], [value("x", [1])] * 2, [value("y", [1])])

    assert in_words(refusal(two_nodes)) == (
        "again (Abs, opset 21): its output 'y' is also that of an earlier node"
    )
    assert refusal(two_inputs) == "the model has 2 inputs 'x'"


def test_outputs_that_nothing_gives() -> None:
    missing = model([node("Relu", "x", "y")], [value("x", [1])], [value("z", [1])])
    none = model([node("Relu", "x", "y")], [value("x", [1])], [])
    too_many = one(helper.make_node("Relu", ["x"], ["y", "z"], "relu"))

    assert refusal(missing) == "no node has the model's output 'z'"
    assert refusal(none) == "the graph of the model has no outputs"
    assert in_words(refusal(too_many)) == (
        "relu (Relu, opset 21): it has 2 outputs, but only 1 are supported"
    )


def test_no_model_at_all() -> None:
    assert refusal(onnx.ModelProto()) == "the model has no graph"


@pytest.mark.parametrize("version", [-1, 0, 10**3, 10**9, 2**62])
def test_opsets_that_are_not_there(version: int) -> None:
    proto = one(node("Relu", "x", "y"))
    proto.opset_import[0].version = version

    last = onnx.defs.onnx_opset_version()
    assert refusal(proto) == f"the model is of opset {version}, needs one from 1 to {last}"
    proto.opset_import[0].domain = "com.nobody"
    assert "com.nobody" in refusal(proto) or "imports no opset" in refusal(proto)


def test_domains_that_are_unknown() -> None:
    stranger = helper.make_node("Relu", ["x"], ["y"], "relu", domain="com.nobody")

    assert in_words(refusal(one(stranger))) == (
        "relu (com.nobody.Relu, opset 1): the model imports no opset of the domain 'com.nobody'"
    )


# --- functions and subgraphs ------------------------------------------------------------

OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]


def function(name: str, *callees: str) -> onnx.FunctionProto:
    """A function that calls others one after the other."""
    nodes = [
        helper.make_node(callee, [f"v{k}"], [f"v{k + 1}"], domain="own")
        for k, callee in enumerate(callees)
    ]
    result = [f"v{len(callees)}"] if callees else ["w"]
    return helper.make_function(
        "own", name, ["v0"], result, nodes or [node("Relu", "v0", "w")], OPSETS
    )


def calling(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    """A model that calls the first of `functions`."""
    first = helper.make_node(functions[0].name, ["x"], ["y"], "call", domain="own")
    return model([first], [value("x", [1])], [value("y", [1])], functions=functions)


def test_functions_that_call_themselves() -> None:
    alone = calling(function("F", "F"))
    in_a_circle = calling(function("F", "G"), function("G", "F"))

    for proto in (alone, in_a_circle):
        assert "functions and graphs are nested more than 64 deep" in refusal(proto)


def test_functions_that_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """2⁵⁰ nodes of 50 functions: it stops at as many nodes as no model has."""
    monkeypatch.setattr(limits, "MOST_NODES", 5000)
    names = [f"F{k}" for k in range(50)]
    doubling = [function(a, b, b) for a, b in pairwise(names)]

    text = refusal(calling(*doubling, function(names[-1])))

    assert "the model has more than 5000 nodes in its functions" in text
    assert len(text.splitlines()) < 60


def nested(depth: int) -> onnx.ModelProto:
    """Conditionals in conditionals."""
    proto = model(
        [node("If", "c", "y", name="outermost")],
        [value("c", [], "bool"), value("x", ["n"])],
        [value("y", ["n"])],
    )
    place = proto.graph.node[0]
    for _ in range(depth):
        for name in ("then_branch", "else_branch"):
            attribute = place.attribute.add(name=name, type=onnx.AttributeProto.GRAPH)
            attribute.g.output.append(value("y", ["n"]))
            attribute.g.node.append(node("Relu", "x", "y"))
        del attribute.g.node[:]
        place = attribute.g.node.add(op_type="If", input=["c"], output=["y"])
    place.CopyFrom(node("Relu", "x", "y"))
    return proto


def test_graphs_in_graphs(tmp_path: Path) -> None:
    deepest = nested(60)
    assert len(rx.from_onnx(deepest).functions) == 121
    assert refusal(nested(1000)) == "graphs are nested more than 64 deep"
    data = b""
    for tag in (b"\x32", b"\x2a", b"\x0a") * 3000:  # an attribute, a node, a graph
        data = tag + varint(len(data)) + data
    (tmp_path / "model.onnx").write_bytes(b"\x3a" + varint(len(data)) + data)
    assert refusal(tmp_path / "model.onnx") == (
        "the model is malformed: its messages are nested too deeply"
    )


def varint(number: int) -> bytes:
    head, rest = number & 0x7F, number >> 7
    return bytes([head | 0x80]) + varint(rest) if rest else bytes([head])


# --- types, shapes and attributes -------------------------------------------------------


def test_inputs_of_no_type() -> None:
    proto = one(node("Relu", "x", "y"))
    proto.graph.input[0].type.tensor_type.elem_type = 99
    assert refusal(proto) == "input 'x': tensors of type 99 are not supported"
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    assert refusal(proto) == "input 'x': tensors of string are not supported"
    proto.graph.input[0].ClearField("type")
    assert refusal(proto) == "input 'x' is of no type, needs a tensor"


def test_extents_that_are_absurd() -> None:
    negative = model([node("Relu", "x", "y")], [value("x", [-3])], [value("y", None)])
    assert refusal(negative) == "the extent x_0 of an input is -3"
    for shape in ([HUGE] * 4, [2**31, 2**31], ["n"] * 10_000):
        proto = model([node("Relu", "x", "a"), node("Flatten", "a", "y")], [], [value("y", None)])
        proto.graph.input.append(value("x", shape))
        settled(proto)


def settled(proto: onnx.ModelProto, *, optimized: bool = False) -> None:
    """A module or a refusal, and nothing else."""
    with suppress(RelaxEgraphError):
        module = rx.from_onnx(proto)
        if optimized:
            rx.optimize(module)


SHAPE = np.array([2**31, 2**31])
ABSURD: dict[str, tuple[onnx.NodeProto, dict[str, Array]]] = {
    "constant of shape": (node("ConstantOfShape", "w", "y"), {"w": SHAPE}),
    "range": (
        node("Range", "a b c", "y"),
        {"a": np.array(0), "b": np.array(HUGE), "c": np.array(1)},
    ),
    "range of floats": (
        node("Range", "a b c", "y"),
        {k: np.array(v, np.float32) for k, v in {"a": 0, "b": 3e38, "c": 1e-30}.items()},
    ),
    "tile": (node("Tile", "w w", "y"), {"w": np.array([2**40])}),
    "tile of weights": (
        node("Tile", "v w", "y"),
        {"v": np.ones((2, 2), np.float32), "w": np.array([2**20, 2**12])},
    ),
    "expand": (node("Expand", "v w", "y"), {"v": np.array([7]), "w": SHAPE}),
    "expand of weights": (
        node("Expand", "v w", "y"),
        {"v": np.ones(1, np.float32), "w": np.array([2**20, 2**12])},
    ),
    "outer sum": (
        node("Add", "a b", "y"),
        {"a": np.arange(4096)[:, None], "b": np.arange(4096)[None]},
    ),
    "gather": (
        node("Gather", "a b", "y"),
        {"a": np.zeros((1, 4096), int), "b": np.zeros(4096, int)},
    ),
    "one hot": (
        node("OneHot", "a b c", "y"),
        {"a": np.array([1]), "b": np.array(2**40), "c": np.array([0, 1])},
    ),
    "sequence": (
        node("SplitToSequence", "w s", "y"),
        {"w": np.zeros(8192, np.float32), "s": np.array(1)},
    ),
    "split": (node("Split", "x", "y", num_outputs=2**31, axis=1), {}),
    "pad": (node("Pad", "x w", "y"), {"w": np.array([0, 0, 0, 2**40])}),
    "pad by the most": (node("Pad", "x w", "y"), {"w": np.array([HUGE] * 4)}),
    "pad by the least": (node("Pad", "x w", "y"), {"w": np.array([-HUGE - 1] * 4)}),
    "reshape": (node("Reshape", "x w", "y"), {"w": np.array([HUGE, -1])}),
    "axis": (node("Softmax", "x", "y", axis=HUGE), {}),
    "axes": (node("Unsqueeze", "x w", "y"), {"w": np.array([HUGE, -HUGE])}),
    "many axes": (node("Unsqueeze", "x w", "y"), {"w": np.arange(3000)}),
    "flatten": (node("Flatten", "x", "y", axis=-(2**31)), {}),
    "permutation": (node("Transpose", "x", "y", perm=[HUGE, 0]), {}),
    "permutation of too many": (node("Transpose", "x", "y", perm=list(range(5000))), {}),
    "diagonal": (node("Trilu", "x w", "y"), {"w": np.array(HUGE)}),
    "slices": (
        node("Slice", "x a b c d", "y"),
        {k: np.array([v]) for k, v in {"a": HUGE, "b": -HUGE, "c": 1, "d": -HUGE - 1}.items()},
    ),
    "steps of nothing": (
        node("Slice", "x a b c d", "y"),
        {k: np.array([v]) for k, v in {"a": 0, "b": 9, "c": 1, "d": 0}.items()},
    ),
    "top": (node("TopK", "x w", "y z"), {"w": np.array([HUGE])}),
    "divided by nothing": (node("Div", "a b", "y"), {"a": np.array(7), "b": np.array(0)}),
    "the least divided": (
        node("Div", "a b", "y"),
        {"a": np.array(-HUGE - 1), "b": np.array(-1)},
    ),
    "cast": (node("Cast", "x", "y", to=77), {}),
    "eye": (node("EyeLike", "w", "y", k=HUGE), {"w": np.zeros((64, 64), np.float32)}),
    "attribute of another type": (node("Softmax", "x", "y", axis=[1.0, 2.0]), {}),
    "strings": (
        helper.make_node("Constant", [], ["y"], value_strings=["a", "b"]),
        {},
    ),
    "window": (node("HannWindow", "w", "y"), {"w": np.array(2**40)}),
    "random": (helper.make_node("RandomNormal", [], ["y"], shape=[2**20, 2**20]), {}),
    "centered": (node("CenterCropPad", "x w", "y", axes=[0]), {"w": np.array([2**40])}),
    "scan": (
        node(
            *("Scan", "x", "y"),
            num_scan_inputs=2**40,
            body=helper.make_graph([], "body", [value("r", [4])], [value("r", [4])]),
        ),
        {},
    ),
    "depth": (node("DepthToSpace", "x", "y", blocksize=0), {}),
}


@pytest.mark.parametrize("name", ABSURD)
def test_numbers_that_are_absurd(name: str) -> None:
    proto, weights = ABSURD[name]

    settled(one(proto, weights), optimized=True)


@pytest.mark.parametrize(
    "op", ["Reshape", "Expand", "Tile", "Pad", "ConstantOfShape", "Unsqueeze", "Squeeze", "Split"]
)
@pytest.mark.parametrize("count", [65, 2**40])
def test_shapes_of_run_time_of_too_many_extents(op: str, count: int) -> None:
    operands = "s" if op == "ConstantOfShape" else "x s"
    proto = model(
        [node(op, operands, "y")],
        [value("x", [2, 3]), value("s", [count], "int64")],
        [value("y", None)],
    )

    settled(proto)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    "attrs",
    [
        {"pads": [2**31] * 4},
        {"pads": [-5] * 4},
        {"kernel_shape": [2**31, 2**31]},
        {"kernel_shape": [0, 0]},
        {"kernel_shape": [3, 3, 3, 3]},
        {"strides": [0, 0]},
        {"strides": [HUGE, HUGE]},
        {"dilations": [2**31, 2**31]},
        {"dilations": [0, -1]},
        {"group": 0},
        {"group": 2**31},
        {"auto_pad": "NO_SUCH"},
        {"auto_pad": "SAME_UPPER", "strides": [0, 1]},
        {"ceil_mode": 7, "strides": [HUGE, 1]},
        {"output_shape": [HUGE, 1]},
        {"output_padding": [-HUGE, 1]},
    ],
)
def test_windows_that_are_absurd(op: str, attrs: dict[str, Any]) -> None:
    convolves = op.startswith("Conv")
    plain = {} if convolves or "kernel_shape" in attrs else {"kernel_shape": [2, 2]}
    proto = model(
        [node(op, "x w" if convolves else "x", "y", **plain, **attrs)],
        [value("x", ["n", 4, 9, 9])],
        [value("y", None)],
        {"w": np.ones((4, 4, 3, 3), np.float32)},
    )

    settled(proto)


def test_extents_of_too_many_terms() -> None:
    """(n + 1)² twenty times, and the product of sixty sums."""
    squares = [node("Mul", f"e{k} e{k}", f"e{k + 1}") for k in range(20)]
    powers = model(
        [node("Shape", "x", "s"), node("Add", "s one", "e0"), *squares],
        [value("x", ["n"])],
        [value("e20", [1], "int64")],
        {"one": np.array([1])},
    )
    shapes = [f"a{k} + b{k}" for k in range(30)]
    plain = [value(n, [n]) for pair in shapes for n in pair.split(" + ")]
    product = model(
        [node("Flatten", "x", "y", axis=0)], [value("x", shapes), *plain], [value("y", None)]
    )

    for proto in (powers, product):
        settled(proto)


@pytest.mark.parametrize(
    "name",
    ["n ** n ** 9", "9 ** 9 ** 9 ** n", "(" * 5000, "n" * 10**5, "n // 0", "__import__('os')"],
)
def test_names_of_extents_that_are_absurd(name: str) -> None:
    proto = model(
        [node("Add", "x n", "y")], [value("x", [name]), value("n", ["n"])], [value("y", None)]
    )

    settled(proto)
