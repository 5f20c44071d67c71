"""The activations of neural networks: elementwise, in the namespace ``R.nn``."""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op("nn", elementwise=True)
def relu(x: TensorStructInfo) -> StructInfo:
    """``out = max(x, 0)``."""
    return tensor(x.dims, x.dtype, x.ndim)


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
