"""The digit classifier, written as the field's tutorials write it, and its data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph import ir

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Digits:
    """Images as the model reads them (pixels / 16), their labels, and the weights."""

    images: Array
    labels: Array
    weights: dict[str, Array]

    @classmethod
    def load(cls) -> "Digits":
        """Read ``digits.npz``, which ``train.py`` wrote."""
        with np.load(Path(__file__).parent / "digits.npz") as data:
            weights = {name: data[name] for name in ("w0", "b0", "w1", "b1")}
            return cls(data["pixels"].astype(np.float32) / 16, data["labels"], weights)

    def logits(self, x: Array) -> Array:
        """What the model computes, by numpy."""
        p = self.weights
        return np.maximum(x @ p["w0"].T + p["b0"], 0) @ p["w1"].T + p["b1"]


def build_model(weights: dict[str, Array]) -> ir.IRModule:
    """Return ``main(x: (n, 64)) -> (n, 10)``: two linear layers, relu between; `n` is symbolic."""
    p = {name: ir.const(value) for name, value in weights.items()}
    bb = ir.BlockBuilder()
    x = ir.Var("x", ir.tensor((ir.symbol("n"), 64), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            w0 = bb.emit(ir.call("permute_dims", p["w0"]))
            hidden = bb.emit(ir.call("add", bb.emit(ir.call("matmul", x, w0)), p["b0"]))
            active = bb.emit(ir.call("nn.relu", hidden))
            w1 = bb.emit(ir.call("permute_dims", p["w1"]))
            product = bb.emit(ir.call("matmul", active, w1))
            logits = bb.emit_output(ir.call("add", product, p["b1"]))
        bb.emit_func_output(logits)
    return bb.get()
