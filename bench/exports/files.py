"""Networks as files: ONNX models with inputs and results of torch."""

import logging
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bench.architectures.export import lively
from bench.architectures.subject import Array, Sizes
from bench.exports.network import Network


@dataclass(frozen=True, slots=True)
class Example:
    """Inputs at `sizes`, and the result of torch."""

    sizes: Sizes
    inputs: dict[str, Array]
    expected: Array


@dataclass(frozen=True, slots=True)
class Exported:
    """The file of a model, and an example for each of the sizes."""

    path: Path
    examples: tuple[Example, ...]


def exported(network: Network, folder: Path) -> Exported:
    """The files of `network` in `folder`; it is exported if they are absent."""
    model, results = folder / f"{network.name}.onnx", folder / f"{network.name}.npz"
    if not model.exists() or not results.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _export(network, model, results)
    with np.load(results) as stored:
        expected: list[Array] = [stored[f"sizes_{k}"] for k in range(len(network.sizes))]
    examples = zip(network.sizes, map(network.drawn, network.sizes), expected, strict=True)
    return Exported(model, tuple(Example(*each) for each in examples))


def _export(network: Network, model: Path, results: Path) -> None:
    """Write `model`, and `results` after it; the weights are seeded."""
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    first, fixed = first_output(torch, network), network.fixed
    drawn = [_tensors(torch, network, sizes) for sizes in network.sizes]
    axes = tuple(
        {axis: n for axis, n in enumerate(each.shape) if isinstance(n, str) and n not in fixed}
        for each in network.inputs.values()
    )
    names: dict[str, Any] = {"input_names": [*network.inputs], "output_names": ["result"]}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            first, drawn[0], dynamo=True, verbose=False, dynamic_shapes=(axes,), **names
        )
        program.save(model)
        np.savez(results, **{f"sizes_{k}": first(*each).numpy() for k, each in enumerate(drawn)})


def first_output(torch: Any, network: Network) -> Any:
    """The network as a module of torch with inputs in order and a single output."""
    transformers: Any = import_module("transformers")
    kind = getattr(transformers, network.model)
    model = kind(kind.config_class(**network.config)).eval()
    names = tuple(network.inputs)

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Any) -> Any:
            inputs = dict(zip(names, values, strict=True))
            return self.model(**inputs, return_dict=False)[0]

    lively(model)
    return First().eval()


def _tensors(torch: Any, network: Network, sizes: Sizes) -> tuple[Any, ...]:
    return tuple(map(torch.from_numpy, network.drawn(sizes).values()))
