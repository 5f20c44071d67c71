"""The activations of neural networks, in the namespace ``R.nn``: elementwise, except `prelu`."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating, numeric
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.ops.operand_checks import is_vector, one_float, subject_of
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op("nn", elementwise=True)
def relu(x: TensorStructInfo) -> StructInfo:
    """``out = max(x, 0)``."""
    return tensor(x.dims, x.dtype, x.ndim)


@op("nn", elementwise=True)
def relu6(x: TensorStructInfo) -> StructInfo:
    """``out = min(max(x, 0), 6)``, of numbers."""
    numeric("nn.relu6", x)
    return tensor(x.dims, x.dtype, x.ndim)


@op("nn", elementwise=True)
def leakyrelu(data: TensorStructInfo, *, alpha: float = 0.01) -> StructInfo:
    """``out = x`` above 0, else ``alpha · x``."""
    return floating("nn.leakyrelu", data)


@op("nn")
def prelu(data: TensorStructInfo, alpha: TensorStructInfo, *, axis: int = 1) -> StructInfo:
    """``out = x`` above 0, else ``alpha[i] · x`` at index ``i`` of `axis`."""
    subject = subject_of("nn.prelu", data, alpha)
    dtype = one_float(subject, data, alpha)
    place = normalize_axis("nn.prelu", data, axis) if data.ndim >= 0 else 0
    is_vector(subject, "alpha", alpha, data.dims[place] if data.dims else None)
    return tensor(data.dims, dtype, data.ndim)


@op("nn", elementwise=True)
def selu(x: TensorStructInfo) -> StructInfo:
    """``out = λ · x`` above 0, else ``λ · α · (eˣ - 1)``.

    With α = 1.67326… and λ = 1.05070… mean 0 and variance 1 are kept (Klambauer et al. 2017).
    """
    return floating("nn.selu", x)


@op("nn", elementwise=True)
def softplus(data: TensorStructInfo, *, beta: float = 1.0, threshold: float = 20.0) -> StructInfo:
    """``out = ln(1 + e^(beta·x)) / beta``; ``x`` itself where ``beta·x`` is above `threshold`."""
    if beta == 0:
        raise IllTyped(f"R.nn.softplus of {data}: beta is 0, needs another number")
    return floating("nn.softplus", data)


@op("nn", elementwise=True)
def gelu(x: TensorStructInfo) -> StructInfo:
    """``out = x/2 · (1 + erf(x/√2))``."""
    return floating("nn.gelu", x)


@op("nn", elementwise=True)
def gelu_tanh(x: TensorStructInfo) -> StructInfo:
    """``out = x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))``."""
    return floating("nn.gelu_tanh", x)


@op("nn", elementwise=True)
def silu(x: TensorStructInfo) -> StructInfo:
    """``out = x / (1 + e⁻ˣ)``."""
    return floating("nn.silu", x)
