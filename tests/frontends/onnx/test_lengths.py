"""Lengths that a model computes beside its convolutions are the extents of their results."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.frontends.onnx.order import ordered
from relax_egraph.ir.demands import demands_of
from tests.support.onnx_models import model, node, value


def speech(*, early: bool) -> onnx.ModelProto:
    """Samples to frames by three convolutions, with a mask over all but the last two frames.

    The lengths ``(samples - 10) / 5 + 1`` and so on are computed first if `early`, as exporters of
    whole networks do, or after the convolutions.
    """
    lengths = [
        node("Shape", "x", "sample", start=2, end=3),
        node("Squeeze", "sample", "samples"),
        node("Sub", "samples ten", "free"),
        node("Div", "free five", "steps"),
        node("Add", "steps minus_seven", "free1"),
        node("Div", "free1 four", "steps1"),
        node("Add", "steps1 minus_two", "free2"),
        node("Div", "free2 two", "steps2"),
        node("Add", "steps2 one", "frames"),
    ]
    convolutions = [
        node("Conv", "x w", "h", strides=[5]),
        node("Relu", "h", "r"),
        node("Conv", "r w1", "h1", strides=[4]),
        node("Relu", "h1", "r1"),
        node("Conv", "r1 w2", "h2", strides=[2]),
    ]
    mask = [
        node("Range", "zero frames one", "positions"),
        node("Sub", "frames two", "last"),
        node("Less", "positions last", "seen"),
        node("Where", "seen h2 nothing", "y"),
    ]
    draw = np.random.default_rng(0)
    weights = {
        "w": draw.standard_normal((4, 1, 10)).astype(np.float32),
        "w1": draw.standard_normal((4, 4, 8)).astype(np.float32),
        "w2": draw.standard_normal((3, 4, 3)).astype(np.float32),
        "nothing": np.zeros((), np.float32),
    }
    numbers = {"zero": 0, "one": 1, "two": 2, "four": 4, "five": 5, "ten": 10}
    numbers |= {"minus_two": -2, "minus_seven": -7}
    nodes = [*lengths, *convolutions] if early else [*convolutions, *lengths]
    return model(
        [*nodes, *mask],
        [value("x", ["batch", 1, "samples"])],
        [value("y", ["batch", 3, "frames"])],
        weights | {name: np.array(number) for name, number in numbers.items()},
    )


@pytest.mark.parametrize("early", [True, False])
def test_quotients_of_lengths_are_known_behind_the_convolutions(early: bool) -> None:
    proto = speech(early=early)
    imported = rx.from_onnx(proto)
    executable = rx.build(rx.optimize(imported))
    machine, reference = rx.VirtualMachine(executable), ReferenceEvaluator(proto)

    assert "relax.run." not in executable.as_text()
    assert list(map(str, demands_of(imported))) == [
        "samples >= 10 (nn.conv1d, shape)",
        "samples // 5 - 1 >= 8 (nn.conv1d, shape)",
        "(samples // 5 - 9) // 4 + 1 >= 3 (nn.conv1d, shape)",
    ]
    for batch, samples in ((1, 85), (2, 86), (3, 400), (0, 105)):
        x = np.random.default_rng(1).standard_normal((batch, 1, samples)).astype(np.float32)
        expected: Any = reference.run(None, {"x": x})
        np.testing.assert_allclose(machine["main"](x), expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (9, "(64, 1, 10): along W the window of 10 does not fit into 9, padding included"),
        (40, "the window of 8 does not fit into 7, padding included"),
        (84, "the window of 3 does not fit into 2, padding included"),
    ],
)
def test_too_few_samples_are_refused_by_the_convolution_that_cannot_take_them(
    samples: int, message: str
) -> None:
    machine = rx.VirtualMachine(rx.build(rx.from_onnx(speech(early=True))))

    with pytest.raises(RunError) as refusal:
        machine["main"](np.zeros((2, 1, samples), np.float32))

    assert message.rpartition(": ")[2] in str(refusal.value)


def test_quotients_are_computed_where_a_node_needs_them() -> None:
    nodes = [
        node("Shape", "x", "n"),
        node("Div", "n two", "half"),
        node("Add", "half two", "more"),
        node("Relu", "x", "y"),
        node("Reshape", "y more", "z"),
        node("Div", "x y", "data"),
        node("Mod", "n two", "rest"),
    ]

    written = [proto.output[0] for proto in ordered(nodes, ["two"])]

    assert written == ["n", "y", "half", "more", "z", "data", "rest"]
