"""Modules as ONNX models."""

from typing import Any

import numpy as np

from bench import onnx_cache
from bench.onnx_nodes import Writer, onnx
from bench.onnx_operators import write_step
from bench.program import program_of
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import TensorStructInfo

OPSET, IR_VERSION = 20, 10
"""The first opset with ``Gelu``, and a version of the format for it."""

RESULT = "y"


def onnx_model(module: IRModule) -> Any:
    """``main`` as a ``ModelProto``; its parameters are ``x0 …``, its result is `RESULT`.

    Caches that grow in place are results, too, see `onnx_cache`.  Raises `NotRunnable` for an
    unsupported operator.
    """
    program = program_of(module)
    names = {**program.names, program.result: RESULT}
    writer = Writer(names, [], dict(program.constants), {})
    for step in program.steps:
        if (write := onnx_cache.OPERATORS.get(step.operator)) is not None:
            write(writer, step)
        else:
            write_step(writer, step)
    caches = dict.fromkeys(cache for cache, _ in writer.appended.values())
    of_name = {names[p]: p for p in program.params}
    graph = onnx.helper.make_graph(
        writer.nodes,
        "main",
        [_declared(p, names[p]) for p in program.params],
        [
            _declared(program.result, RESULT),
            *(_declared(of_name[cache], onnx_cache.grown(cache)) for cache in caches),
        ],
        [onnx.numpy_helper.from_array(data, name) for name, data in writer.tensors.items()],
    )
    versions = {"": OPSET, **({onnx_cache.DOMAIN: 1} if caches else {})}
    opsets = [onnx.helper.make_opsetid(*version) for version in versions.items()]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


def _declared(variable: Var, name: str) -> Any:
    """The value `name` with the type of `variable`; symbolic extents have their names."""
    info = variable.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    shape = [d if isinstance(d, int) else dims.text(d) for d in info.dims]
    dtype = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(info.dtype))
    return onnx.helper.make_tensor_value_info(name, dtype, shape)
