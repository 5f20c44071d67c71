"""The nine networks that ONNX includes, with random weights, beside onnxruntime.

Run from the top of the repository: ``python -m bench.onnx_light [WORDS]``.  Their original weights
are a single number, so that results test no arithmetic; here the weights are random, seeded, and
scaled to keep the magnitude of activations.
"""

import argparse
import math
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import relax_egraph as rx
from bench.program import Array

onnx: Any = import_module("onnx")  # optional: absent when types are checked

TOLERANCE = 1e-4
"""The allowed difference, relative to the largest result."""


def networks(words: Sequence[str] = ()) -> list[Path]:
    """The files with any of `words` in their names, or all."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    files = sorted(folder.glob("light_*.onnx"))
    return [f for f in files if not words or any(word in f.name for word in words)]


def with_random_weights(model: Any, seed: int = 0) -> Any:
    """`model` with random weights in place of ``ConstantOfShape`` nodes."""
    random = np.random.default_rng(seed)
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    roles = {
        name: (node.op_type, place)
        for node in model.graph.node
        for place, name in enumerate(node.input)
    }
    weight_nodes = [
        n for n in model.graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes
    ]
    for node in weight_nodes:
        shape = tuple(int(extent) for extent in shapes[node.input[0]])
        weight = _weight(shape, roles.get(node.output[0], ("", 0)), random)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, node.output[0]))
        model.graph.node.remove(node)
    used = {name for node in model.graph.node for name in node.input}
    for values in (model.graph.initializer, model.graph.input):
        for unused in [each for each in values if each.name not in used]:
            values.remove(unused)
    return model


def with_logits(model: Any) -> Any:
    """`model` with the operand of a final softmax as a further output, which is less saturated."""
    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        model.graph.output.add(name=last.input[0])
    return model


def _weight(shape: tuple[int, ...], role: tuple[str, int], random: np.random.Generator) -> Array:
    """A weight for an operand of an operator: kernels are scaled by the size of their sums."""
    kind, place = role
    if kind == "BatchNormalization" and place in (1, 4):
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    if len(shape) < 2:
        return (0.1 * random.standard_normal(shape) + (kind == "Unsqueeze")).astype(np.float32)
    summed = math.prod(shape[1:])
    return (random.standard_normal(shape) * math.sqrt(2 / summed)).astype(np.float32)


def difference(file: Path) -> tuple[float, float]:
    """The largest relative difference from onnxruntime, and the spread of the logits."""
    runtime: Any = import_module("onnxruntime")
    model = with_logits(with_random_weights(onnx.load(file)))
    weights = {t.name for t in model.graph.initializer}
    (input_info,) = (i for i in model.graph.input if i.name not in weights)
    shape = [d.dim_value for d in input_info.type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    theirs = runtime.InferenceSession(model.SerializeToString()).run(None, {input_info.name: x})
    main = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(model))))["main"]
    results = main(x)
    ours: tuple[Array, ...] = results if isinstance(results, tuple) else (results,)
    assert [a.shape for a in ours] == [b.shape for b in theirs]
    off = [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(ours, theirs, strict=True)]
    return float(max(off)), float(theirs[-1].std())


def main() -> int:
    """Print the difference of each network; returns 1 if one is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    failed = 0
    for file in networks(parser.parse_args().words):
        start = time.monotonic()
        off, spread = difference(file)
        failed += not off <= TOLERANCE or spread == 0
        took = time.monotonic() - start
        print(f"{file.stem}: off by {off:.1e}, logits spread by {spread:.1e}, {took:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
