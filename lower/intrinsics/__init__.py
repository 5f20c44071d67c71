"""The micro-kernels that schedules call by name, written by hand for each width of vectors."""

from collections.abc import Mapping

from relax_egraph.lower.emit.module_text import IntrinsicEmitter
from relax_egraph.lower.intrinsics import axpy, depthwise, dots, gemm, softmax, transpose, window

INTRINSICS: Mapping[str, IntrinsicEmitter] = {
    **gemm.GEMM_TILES,
    axpy.NAME: axpy.define_axpy_tile,
    depthwise.NAME: depthwise.define_depthwise_tile,
    dots.NAME: dots.define_dot_tile,
    softmax.NAME: softmax.define_softmax_tile,
    **transpose.TRANSPOSES,
    window.NAME: window.define_window_tile,
}
"""What writes each micro-kernel, by the name in `TensorIntrinsic`."""
