"""Loops, scans and sequences of ONNX models, of lengths that are known only at run time."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import relax_egraph as rx
from relax_egraph.errors import ModelError, RunError
from tests.support.onnx_models import Array, model, node, value

RNG = np.random.default_rng(0)


def machine(proto: onnx.ModelProto) -> Any:
    return rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(proto))))["main"]


def graph(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
) -> onnx.GraphProto:
    return helper.make_graph(nodes, "body", inputs, outputs)


def test_a_loop_whose_state_grows() -> None:
    """x, x x, x x x x …, and in each turn the sum; the body reads `step` from around it."""
    body = graph(
        [
            node("Concat", "v v", "twice", axis=0),
            node("ReduceSum", "v", "total", keepdims=0),
            node("Add", "total step", "out"),
            node("Identity", "go_on", "still"),
        ],
        [value("turn", [], "int64"), value("go_on", [], "bool"), value("v", ["k"])],
        [value("still", [], "bool"), value("twice", [None]), value("out", [])],
    )
    main = machine(
        model(
            [node("Loop", "turns _ x", "last totals", body=body)],
            [value("turns", [], "int64"), value("x", ["n"]), value("step", [])],
            [value("last", [None]), value("totals", [None])],
        )
    )

    x, step = RNG.standard_normal(3).astype(np.float32), np.float32(10)
    for turns in (0, 1, 4):
        last, totals = main(np.array(turns), x, np.array(step))
        np.testing.assert_array_equal(last, np.tile(x, 2**turns))
        expected = [x.sum() * 2**k + step for k in range(turns)]
        np.testing.assert_allclose(totals, np.array(expected, np.float32), 1e-5)


def test_a_loop_that_ends_by_itself() -> None:
    """Collatz: how many steps until 1."""
    body = graph(
        [
            node("Mod", "v two", "odd"),
            node("Equal", "odd one", "is_odd"),
            node("Mul", "v three", "tripled"),
            node("Add", "tripled one", "up"),
            node("Div", "v two", "down"),
            node("Where", "is_odd up down", "next"),
            node("Greater", "next one", "still"),
            node("Add", "count one", "more"),
        ],
        [
            *(value("turn", [], "int64"), value("go_on", [], "bool")),
            *(value("v", [], "int64"), value("count", [], "int64")),
        ],
        [value("still", [], "bool"), value("next", [], "int64"), value("more", [], "int64")],
    )
    main = machine(
        model(
            [node("Loop", "_ yes n zero", "last steps", body=body)],
            [value("n", [], "int64")],
            [value("steps", [], "int64")],
            {
                **{name: np.array(k) for k, name in enumerate(("zero", "one", "two", "three"))},
                "yes": np.array(True),
            },
        )
    )

    assert main(np.array(27)) == 111
    assert main(np.array(8)) == 3


def scan(x: Array, h: Array) -> tuple[Array, Array]:
    states = []
    for row in x:
        h = np.tanh(h + row)
        states.append(h)
    return h, np.stack(states) if states else np.zeros((0, *h.shape), h.dtype)


@pytest.mark.parametrize("backward", [False, True])
def test_a_scan(backward: bool) -> None:
    body = graph(
        [node("Add", "h row", "sum"), node("Tanh", "sum", "next"), node("Identity", "next", "y")],
        [value("h", [4]), value("row", [4])],
        [value("next", [4]), value("y", [4])],
    )
    directions = {"scan_input_directions": [1], "scan_output_directions": [1]} if backward else {}
    main = machine(
        model(
            [node("Scan", "start x", "last all", body=body, num_scan_inputs=1, **directions)],
            [value("start", [4]), value("x", ["time", 4])],
            [value("last", [4]), value("all", ["time", 4])],
        )
    )

    start = RNG.standard_normal(4).astype(np.float32)
    for time in (0, 1, 7):
        x = RNG.standard_normal((time, 4)).astype(np.float32)
        last, every = scan(x[::-1] if backward else x, start)
        found = main(start, x)
        np.testing.assert_allclose(found[0], last, 1e-5, 1e-6)
        np.testing.assert_allclose(found[1], every[::-1] if backward else every, 1e-5, 1e-6)


def test_sequences_of_known_length_cost_nothing() -> None:
    """They are tuples: what is taken out of one is what was put in."""
    imported = rx.from_onnx(
        model(
            [
                node("SequenceConstruct", "a b", "s"),
                node("SequenceInsert", "s c zero", "t"),
                node("SequenceErase", "t last", "u"),
                node("SequenceAt", "u one", "first"),
                node("ConcatFromSequence", "u", "both", axis=0),
                node("SequenceLength", "u", "count"),
            ],
            [value(name, ["n"]) for name in "abc"],
            [value("first", ["n"]), value("both", [None]), value("count", [], "int64")],
            {"zero": np.array(0), "one": np.array(1), "last": np.array(-1)},
        )
    )

    assert imported.script().splitlines()[10:] == [
        "        n = T.int64()",
        "        with R.dataflow():",
        '            both: R.Tensor((n * 2,), "float32") = R.concat((c, a))',
        "            R.output(both)",
        '        return (a, both, R.const(2, "int64"))',
    ]


def test_a_position_outside_of_a_sequence() -> None:
    split = model(
        [node("SplitToSequence", "x", "parts"), node("SequenceAt", "parts at", "y")],
        [value("x", ["n", 2]), value("at", [], "int64")],
        [value("y", [None, None])],
    )
    main = machine(split)

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(main(x, np.array(-1)), x[2:])
    with pytest.raises(RunError, match=r"vm.builtin.sequence_at: position 3 of 3"):
        main(x, np.array(3))


def test_a_sequence_that_is_known_to_be_too_short() -> None:
    proto = model(
        [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s two", "y", name="at")],
        [value("x", ["n"])],
        [value("y", ["n"])],
        {"two": np.array(2)},
    )

    with pytest.raises(ModelError, match=r"at \(SequenceAt, opset 21\): position 2 of a sequence"):
        rx.from_onnx(proto)
