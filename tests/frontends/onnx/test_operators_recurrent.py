"""Recurrent nodes: one operator for the usual ones, which computes what the loop does."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir.expr import Call
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import post_order_visit
from tests.support.onnx_nodes import OptionalArray, floats, one_node, run

FEATURES, SIZE, BATCH, TIMES = 3, 5, 2, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ENDLESS: dict[str, Any] = {"clip": 1e30}
"""A limit, which only the loop has."""

WAYS: list[dict[str, Any]] = [
    {"direction": "reverse"},
    {"direction": "bidirectional", "layout": 1},
]


def operands_of(op: str, how: dict[str, Any]) -> list[OptionalArray]:
    """Input, weights, recurrence, bias, lengths if the batch is first, and the first states."""
    count, width = 2 if how.get("direction") == "bidirectional" else 1, GATES[op] * SIZE
    x, states = floats(TIMES, BATCH, FEATURES), floats(count, BATCH, SIZE)
    if how.get("layout"):
        x, states = x.swapaxes(0, 1).copy(), states.swapaxes(0, 1).copy()
    w, r, b = floats(count, width, FEATURES), floats(count, width, SIZE), floats(count, 2 * width)
    lengths = np.array([TIMES, 2], np.int32) if how.get("layout") else None
    return [x, w, r, b, lengths, *[states] * (2 if op == "LSTM" else 1)]


def known(operands: list[OptionalArray]) -> dict[str, Any]:
    """How the node is made: extents of weights are known, those of all others are symbols."""
    shapes = {k: o.shape for k, o in enumerate(operands) if o is not None and k in (1, 2, 3)}
    outputs = ("y", "h", "c")[: len(operands) - 4]
    return {"shapes": shapes, "outputs": outputs, "hidden_size": SIZE}


def operators_of(op: str, operands: list[OptionalArray], how: dict[str, Any]) -> set[str]:
    module = rx.from_onnx(one_node(op, operands, **known(operands), **how))
    names = set[str]()

    def visit(e: Any) -> None:
        if isinstance(e, Call) and isinstance(e.op, Op):
            names.add(e.op.name)

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    return names


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    ("op", "flags"), [("RNN", {}), ("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})]
)
def test_a_layer_is_one_operator_that_computes_what_the_loop_does(
    op: str, flags: dict[str, Any], how: dict[str, Any]
) -> None:
    operands, how = operands_of(op, how), {**how, **flags}

    assert f"nn.{op.lower()}" in operators_of(op, operands, how)
    assert f"nn.{op.lower()}" not in operators_of(op, operands, {**how, **ENDLESS})
    results = zip(
        run(op, *operands, **known(operands), **how),
        run(op, *operands, **known(operands), **how, **ENDLESS),
        strict=True,
    )
    for one, other in results:
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.parametrize(
    ("op", "how"),
    [
        ("LSTM", {"clip": 1.0}),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Tanh"]}),
        ("GRU", {"activations": ["Sigmoid", "Relu"]}),
    ],
)
def test_what_the_operator_does_not_compute_stays_a_loop(op: str, how: dict[str, Any]) -> None:
    assert not {"nn.lstm", "nn.gru"} & operators_of(op, operands_of(op, how), how)


def test_usual_activations_may_be_named() -> None:
    how: dict[str, Any] = {"direction": "reverse", "activations": ["sigmoid", "Tanh"]}

    assert "nn.gru" in operators_of("GRU", operands_of("GRU", how), how)
