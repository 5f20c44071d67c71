"""Networks of torch as models of ONNX, by either of its exporters."""

import io
import logging
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import onnx

from bench.architectures.subject import Array, Sizes, Subject

torch: Any = import_module("torch")  # optional: absent when types are checked

Exporter: TypeAlias = Literal["dynamo", "torchscript"]


@dataclass(frozen=True, slots=True)
class Exported:
    """A network with weights, and the model exported from it."""

    network: Any
    model: onnx.ModelProto

    def expected(self, inputs: dict[str, Array]) -> Array:
        """The result of torch for `inputs`."""
        with torch.no_grad():
            return self.network(*map(torch.from_numpy, inputs.values())).numpy()


def exported(subject: Subject, exporter: Exporter) -> Exported:
    """`subject` with seeded weights, exported; its dimensions keep their names."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = lively(subject.build().eval())
    inputs = _tensors(subject, subject.sizes[0])
    axes = {name: _dynamic(each.shape) for name, each in subject.inputs.items()}
    shapes = tuple(axes.values())
    names: dict[str, Any] = {"input_names": [*axes], "output_names": ["result"]}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            program = torch.onnx.export(
                network, inputs, dynamo=True, verbose=False, dynamic_shapes=shapes, **names
            )
            return Exported(network, program.model_proto)
        file = io.BytesIO()
        torch.onnx.export(network, inputs, file, dynamo=False, dynamic_axes=axes, **names)
    return Exported(network, onnx.load_from_string(file.getvalue()))


def lively(network: Any) -> Any:
    """`network` with random statistics and scales of norms unlike their initial values."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
            elif isinstance(module, torch.nn.LayerNorm) and module.bias is not None:
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
    return network


def _tensors(subject: Subject, sizes: Sizes) -> tuple[Any, ...]:
    return tuple(map(torch.from_numpy, subject.drawn(sizes).values()))


def _dynamic(shape: tuple[int | str, ...]) -> dict[int, str]:
    return {axis: extent for axis, extent in enumerate(shape) if isinstance(extent, str)}
