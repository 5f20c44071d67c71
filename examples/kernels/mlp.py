"""A part of a graph, two layers of a network, as a session of onnxruntime.

Run from the top of the repository, with onnx and onnxruntime: ``python -m examples.kernels.mlp``.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.extract import PricedCall

Array = npt.NDArray[Any]
Network = Callable[..., Array]

RULES = Path(__file__).with_name("mlp.egg")

MODULE = rx.parse("""
@R.function
def main(
    x: R.Tensor(("n", 64), "float32"),
    v: R.Tensor((64, 128), "float32"),
    b: R.Tensor((128,), "float32"),
    w: R.Tensor((128, 10), "float32"),
    c: R.Tensor((10,), "float32"),
):
    with R.dataflow():
        hidden = R.nn.relu(R.add(R.matmul(x, v), b))
        y = R.nn.softmax(R.add(R.matmul(hidden, w), c))
        R.output(y)
    return y
""")


def in_numpy(x: Array, v: Array, b: Array, w: Array, c: Array) -> Array:
    """The two layers that the rule gives away."""
    return np.maximum(x @ v + b, 0) @ w + c


def session() -> Network:
    """The two layers in onnxruntime."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Gemm", ["x", "v", "b"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "w", "c"], ["y"]),
    ]
    ranks = {"x": 2, "v": 2, "b": 1, "w": 2, "c": 1, "y": 2}
    infos = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank)
        for name, rank in ranks.items()
    }
    inputs = [infos[name] for name in "xvbwc"]
    graph = helper.make_graph(nodes, "mlp", inputs, [infos["y"]])
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    session_of = import_module("onnxruntime").InferenceSession
    running = session_of(model.SerializeToString(), providers=["CPUExecutionProvider"])

    def network(*operands: Array) -> Array:
        (result,) = running.run(None, dict(zip("xvbwc", operands, strict=True)))
        return result

    return network


def price(call: float, rate: float = 400e9) -> rx.Prices:
    """A session that needs `call` seconds to begin, and computes `rate` flops a second."""

    def seconds(of: PricedCall) -> float:
        x, v, _, w, _ = of.shapes
        flops = 2 * x[0] * (v[0] * v[1] + w[0] * w[1]) if x and v and w else 0
        return call + flops / rate

    return rx.Prices(calls={"onnxruntime.mlp": seconds})


def main() -> None:
    """Print what is chosen at two prices, and whether numpy agrees."""
    network = session()
    rng = np.random.default_rng(0)
    shapes = ((32, 64), (64, 128), (128,), (128, 10), (10,))
    operands = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    logits = in_numpy(*operands)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    for call in (1e-7, 1e-3):
        best = rx.optimize(MODULE, [RULES], prices=price(call), hints={"n": 32})
        vm = rx.VirtualMachine(rx.build(best), packed={"onnxruntime.mlp": network})
        same = np.allclose(vm["main"](*operands), powers / powers.sum(1, keepdims=True), atol=1e-5)
        chosen = "onnxruntime" if "onnxruntime.mlp" in best.script() else "kernels"
        print(f"{call:g} s a call: {chosen}, numpy: {same}")


if __name__ == "__main__":
    main()
