"""Widths, counts and repeats that the run computes: machine code for what they decide."""

import re

import numpy as np
import pytest
from onnx import NodeProto

import relax_egraph as rx
from relax_egraph.ir.run_time import PREFIX
from relax_egraph.lower.legalize_ops import legalize_ops
from tests.support.onnx_models import Array, model, node, value

X = np.arange(12, dtype=np.float32).reshape(3, 4)
TO_EIGHTS = [
    node("Shape", "x", "s", start=1, end=2),
    node("Neg", "s", "less"),
    node("Mod", "less eight", "more"),
    node("Concat", "none more", "w", axis=0),
]
REPEATED = [node("Slice", "w a b", "t"), node("Tile", "x t", "y")]
GREATEST = [node("Slice", "w c e", "k"), node("TopK", "x k", "y at")]
LATE = [value("w", [4], "int64")]
CASES: list[tuple[list[NodeProto], Array | None, Array]] = [
    ([node("Pad", "x w", "y")], np.array([1, 0, 2, 3]), np.pad(X, [(1, 2), (0, 3)])),
    ([node("Pad", "x w", "y")], np.array([-1, 2, 0, -1]), np.pad(X[1:, :3], [(0, 0), (2, 0)])),
    ([node("Pad", "x w", "y")], np.array([-9, 0, 0, 0]), np.zeros((0, 4), np.float32)),
    ([*TO_EIGHTS, node("Pad", "x w", "y")], None, np.pad(X, [(0, 0), (0, 4)])),
    (REPEATED, np.array([2, 3, 0, 0]), np.tile(X, (2, 3))),
    (REPEATED, np.array([0, 1, 0, 0]), X[:0]),
    (GREATEST, np.array([9, 9, 9, 2]), X[:, :1:-1]),
    (GREATEST, np.array([9, 9, 9, 7]), X[:, ::-1]),
]
WEIGHTS = {
    "eight": np.array([8]),
    "none": np.array([0, 0, 0]),
    "a": np.array([0]),
    "b": np.array([2]),
    "c": np.array([3]),
    "e": np.array([4]),
}


@pytest.mark.parametrize(("nodes", "numbers", "expected"), CASES)
def test_what_numbers_of_the_run_decide_is_a_kernel(
    nodes: list[NodeProto], numbers: Array | None, expected: Array
) -> None:
    used = {name for n in nodes for name in n.input}
    inputs = [value("x", ["n", "m"]), *(LATE if numbers is not None else [])]
    weights = {name: array for name, array in WEIGHTS.items() if name in used}
    imported = rx.from_onnx(model(nodes, inputs, [value("y", [None, None])], weights))

    run = rx.VirtualMachine(rx.build(rx.optimize(imported)))["main"]
    result = run(X) if numbers is None else run(X, numbers)

    np.testing.assert_array_equal(result, expected)
    assert not re.findall(rf"{PREFIX}[\w.]+", legalize_ops(imported).script())
