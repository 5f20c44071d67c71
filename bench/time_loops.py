"""An LSTM written as ONNX's ``Scan`` and ``Loop``, beside onnxruntime, on one thread.

Run from the top of the repository: ``python -m bench.time_loops``.
"""

from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

import relax_egraph as rx
from bench.architectures.outcome import TOLERANCE
from bench.output import console
from bench.program import Array
from bench.tables import ENOUGH, SHORT
from bench.timing import least

onnx: Any = import_module("onnx")  # optional: absent when types are checked
onnxruntime: Any = import_module("onnxruntime")  # optional: absent when types are checked

WANTED = 1.2
"""The minimal speed relative to onnxruntime."""

EXTENTS = ((50, 32), (50, 128), (512, 32), (512, 128))
"""The numbers of turns, and of elements of a state."""

_CELL = (
    ("MatMul", "h w", "product"),
    ("Add", "product now", "gates"),
    ("Split", "gates", "i o f g"),
    *(("Sigmoid", gate, f"{gate}_open") for gate in "iof"),
    ("Tanh", "g", "candidate"),
    ("Mul", "f_open c", "kept"),
    ("Mul", "i_open candidate", "added"),
    ("Add", "kept added", "c_next"),
    ("Tanh", "c_next", "shown"),
    ("Mul", "o_open shown", "h_next"),
    ("Identity", "h_next", "item"),
)
"""Operators, operands and results of a turn."""


def model(kind: str, times: int, size: int) -> Any:
    """A model of one ``Scan`` or ``Loop``, of gates (times, 1, 4 · size) and two states."""
    helper, kinds = onnx.helper, onnx.TensorProto
    weights = np.random.default_rng(0).normal(0, size**-0.5, (size, 4 * size)).astype(np.float32)

    def value(name: str, *shape: int, of: int = kinds.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, of, shape)

    nodes = [
        helper.make_node(
            op, a.split(), b.split(), **({"axis": 1, "num_outputs": 4} if op == "Split" else {})
        )
        for op, a, b in _CELL
    ]
    states = [value(name, 1, size) for name in ("h", "c")]
    results = [value(name, 1, size) for name in ("h_next", "c_next", "item")]
    constants = {"w": weights}
    if kind == "Scan":
        body = helper.make_graph(nodes, "turn", [*states, value("now", 1, 4 * size)], results)
        names, attrs = ["h0", "c0", "x"], {"num_scan_inputs": 1}
    else:
        nodes.insert(0, helper.make_node("Gather", ["x", "turn"], ["now"], axis=0))
        nodes.append(helper.make_node("Identity", ["go_on"], ["still"]))
        head = [value("turn", of=kinds.INT64), value("go_on", of=kinds.BOOL)]
        results = [value("still", of=kinds.BOOL), *results]
        body = helper.make_graph(nodes, "turn", [*head, *states], results)
        names, attrs = ["times", "yes", "h0", "c0"], {}
        constants |= {"times": np.array(times), "yes": np.array(True)}
    whole = helper.make_node(kind, names, ["h_last", "c_last", "y"], body=body, **attrs)
    inputs = [value("x", times, 1, 4 * size), value("h0", 1, size), value("c0", 1, size)]
    initial = [onnx.numpy_helper.from_array(v, name) for name, v in constants.items()]
    graph = helper.make_graph([whole], "graph", inputs, [value("y", times, 1, size)], initial)
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9)


def main() -> int:
    """Print a table; returns 1 if a result is wrong, or slower than wanted."""
    table, failed = Table("loop", "difference", "ours, ms", "onnxruntime", "/ ours"), False
    for kind, (times, size) in product(("Scan", "Loop"), EXTENTS):
        source, random = model(kind, times, size), np.random.default_rng(1)
        shapes = {"x": (times, 1, 4 * size), "h0": (1, size), "c0": (1, size)}
        inputs: dict[str, Array] = {
            k: random.normal(size=s).astype(np.float32) for k, s in shapes.items()
        }
        machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(source))), num_threads=1)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(source.SerializeToString(), options)
        ours, theirs = (
            partial(machine["main"], *inputs.values()),
            partial(session.run, None, inputs),
        )
        difference = float(np.abs(np.array(ours()) - theirs()[0]).max())
        seconds = least({"ours": ours, "onnxruntime": theirs}, 0.5)
        ratio = seconds["onnxruntime"] / seconds["ours"]
        failed |= ratio < WANTED or difference > TOLERANCE
        table.add_row(
            f"{kind}, {times} turns of {size}",
            Text(f"{difference:.0e}", ENOUGH if difference < TOLERANCE else SHORT),
            *(f"{s * 1e3:.3f}" for s in seconds.values()),
            Text(f"{ratio:.1f}", ENOUGH if ratio >= WANTED else SHORT),
        )
    console().print(table)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
