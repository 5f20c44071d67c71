"""Instances of the activations of neural networks."""

from collections.abc import Mapping

from tests.ops.case import ANY, FLOATS, Sampler, elementwise

SAMPLERS: Mapping[str, Sampler] = {
    "nn.relu": elementwise(1, ANY),
    **dict.fromkeys(["nn.gelu", "nn.gelu_tanh", "nn.silu"], elementwise(1, FLOATS)),
}
