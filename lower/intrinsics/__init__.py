"""Micro-kernels: routines that schedules call by name, hand-written for each vector width."""

from collections.abc import Mapping

from relax_egraph.lower.emit.module_text import IntrinsicEmitter
from relax_egraph.lower.intrinsics import (
    axpy,
    depthwise,
    dots,
    gemm,
    plane,
    sliding,
    softmax,
    transpose,
    window,
)

INTRINSICS: Mapping[str, IntrinsicEmitter] = {
    **gemm.GEMM_TILES,
    axpy.NAME: axpy.define_axpy_tile,
    depthwise.NAME: depthwise.define_depthwise_tile,
    dots.NAME: dots.define_dot_tile,
    plane.NAME: plane.define_plane_tile,
    **sliding.SLIDING_TILES,
    softmax.NAME: softmax.define_softmax_tile,
    **transpose.TRANSPOSES,
    window.NAME: window.define_window_tile,
}
"""The emitter of each micro-kernel, by the name in `TensorIntrinsic`."""
