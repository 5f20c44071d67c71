"""The micro-kernels that schedules call by name, written by hand for each width of vectors."""

from collections.abc import Mapping

from relax_egraph.lower.emit.module_text import IntrinsicEmitter
from relax_egraph.lower.intrinsics import gemm, transpose

INTRINSICS: Mapping[str, IntrinsicEmitter] = {
    gemm.NAME: gemm.define_gemm_tile,
    **transpose.TRANSPOSES,
}
"""What writes each micro-kernel, by the name in `TensorIntrinsic`."""
