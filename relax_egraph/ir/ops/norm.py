"""Normalisations: softmax and its kin, in the namespace ``R.nn``."""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo


@op("nn", fusible=True)
def softmax(x: TensorStructInfo, *, axis: int = -1) -> StructInfo:
    """``out = eˣ / Σ eˣ`` along `axis`, computed of ``x - max x``."""
    if x.ndim >= 0:
        normalize_axis("nn.softmax", x, axis)
    return floating("nn.softmax", x)
