"""The activations of recurrent networks: names and parameters of the ONNX operators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.ir.expr import Expr, const

Emit = Callable[..., Expr]


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation and its parameters."""

    name: str
    alpha: float
    beta: float

    def apply(self, emit: Emit, x: Expr) -> Expr:
        """The activation of `x`."""
        dtype = dtype_of(x)
        alpha, beta = const(self.alpha, dtype), const(self.beta, dtype)
        zero, one = const(0.0, dtype), const(1.0, dtype)
        match self.name:
            case "sigmoid" | "tanh":
                return emit(self.name, x)
            case "relu":
                return emit("nn.relu", x)
            case "affine":
                return emit("add", emit("multiply", x, alpha), beta)
            case "leakyrelu":
                return emit("nn.leakyrelu", x, alpha=self.alpha)
            case "thresholdedrelu":
                return emit("where", emit("greater", x, alpha), x, zero)
            case "scaledtanh":
                return emit("multiply", emit("tanh", emit("multiply", x, beta)), alpha)
            case "hardsigmoid":
                line = emit("add", emit("multiply", x, alpha), beta)
                return emit("clip", line, min=0.0, max=1.0)
            case "elu":
                below = emit("multiply", emit("subtract", emit("exp", x), one), alpha)
                return emit("where", emit("less", x, zero), below, x)
            case "softsign":
                return emit("divide", x, emit("add", emit("abs", x), one))
            case "softplus":
                return emit("nn.softplus", x)
            case _:
                raise ModelError(f"activation {self.name!r} is not supported")


_PARAMETERS: Mapping[str, tuple[float, float]] = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, 0.0),
    "thresholdedrelu": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
}
"""The default parameters of activations."""


def activations(node: Node, usual: tuple[str, ...], k: int) -> tuple[Activation, ...]:
    """The activations of direction `k`, by default `usual`; parameters are taken in order."""
    count = len(usual)
    names = node.attrs.texts("activations") if node.attrs.has("activations") else ()
    names = names or usual * (k + 1)
    if len(names) < (k + 1) * count:
        raise ModelError(f"its activations are {list(names)}, needs {count} for each direction")
    parameters = {
        name: list(node.attrs.numbers(name)) if node.attrs.has(name) else []
        for name in ("activation_alpha", "activation_beta")
    }
    chosen: list[Activation] = []
    for name in map(str.lower, names):
        alpha, beta = _PARAMETERS.get(name, (0.0, 0.0))
        if name in _PARAMETERS and parameters["activation_alpha"]:
            alpha = parameters["activation_alpha"].pop(0)
        if name in ("affine", "scaledtanh", "hardsigmoid") and parameters["activation_beta"]:
            beta = parameters["activation_beta"].pop(0)
        chosen.append(Activation(name, alpha, beta))
    return tuple(chosen[k * count : (k + 1) * count])
