"""OpenVINO: requests over memory that is shared with numpy, in float32."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from bench.onnx_writer import onnx_model
from bench.program import Array, NotRunnable, uses
from bench.system import Bind, Bound, empty_like
from relax_egraph.ir.module import IRModule

openvino: Any = import_module("openvino")  # optional: absent when types are checked

_FIRST_LENGTH = 3
"""The extent of symbolic axes in the first call of a model: results are wrong if it is 1."""


def compiled(module: IRModule, threads: int) -> Bind:
    """`module` as an ONNX model; the default precision would be bfloat16."""
    if uses(module, "float64"):
        raise NotRunnable("float64 is computed in float32")
    core = openvino.Core()
    model = core.read_model(onnx_model(module).SerializeToString(), b"")
    if len(model.outputs) > 1:
        raise NotRunnable("caches do not grow in place")
    options = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }

    def bind(inputs: Sequence[Array]) -> Bound:
        """Bind a new executable: one that had shorter inputs before corrupts memory."""
        executable = core.compile_model(model, "CPU", options)
        request = executable.create_infer_request()
        if model.is_dynamic():
            request.infer([_first_array(i) for i in executable.inputs])
        for place, x in enumerate(inputs):
            request.set_input_tensor(place, openvino.Tensor(x, shared_memory=True))
        request.infer()
        y = empty_like(request.get_output_tensor(0).data)
        request.set_output_tensor(0, openvino.Tensor(y, shared_memory=True))
        request.memory = (inputs, y)  # the request has addresses only

        def result() -> Array:
            request.infer()
            return y.copy()

        return Bound(request.infer, result)

    return bind


def _first_array(declared: Any) -> Array:
    extents = declared.get_partial_shape()
    shape = [_FIRST_LENGTH if e.is_dynamic else e.get_length() for e in extents]
    return np.zeros(shape, declared.get_element_type().to_dtype())
