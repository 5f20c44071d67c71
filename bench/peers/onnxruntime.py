"""onnxruntime: sessions whose inputs and outputs are bound to memory once."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bench.onnx_cache import grown
from bench.onnx_writer import RESULT, onnx_model
from bench.program import Array
from bench.system import Bind, Bound, empty_like
from relax_egraph.ir.module import IRModule

onnxruntime: Any = import_module("onnxruntime")  # optional: absent when types are checked


def compiled(module: IRModule, threads: int) -> Bind:
    """A session of `module` with all of its graph optimizations."""
    return _session(module, threads, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)


def as_written(module: IRModule, threads: int) -> Bind:
    """A session of `module` with a kernel for each operator."""
    return _session(module, threads, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)


def _session(module: IRModule, threads: int, optimizations: Any) -> Bind:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = optimizations
    data = onnx_model(module).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [declared.name for declared in session.get_inputs()]
    results = {declared.name for declared in session.get_outputs()}

    def bind(inputs: Sequence[Array]) -> Bound:
        feeds = dict(zip(names, inputs, strict=True))
        y = empty_like(session.run([RESULT], feeds)[0])
        binding = session.io_binding()
        for name, x in feeds.items():
            binding.bind_cpu_input(name, x)
        binding.bind_output(RESULT, "cpu", 0, y.dtype, y.shape, y.ctypes.data)
        for cache in names:
            if (after := grown(cache)) in results:
                x = feeds[cache]
                binding.bind_output(after, "cpu", 0, np.float32, x.shape, x.ctypes.data)
        binding.memory = (feeds, y)  # the binding has addresses only
        run = partial(session.run_with_iobinding, binding)

        def result() -> Array:
            run()
            return y.copy()

        return Bound(run, result)

    return bind
