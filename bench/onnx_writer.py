"""Modules as ONNX models, of the operators that the workloads use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bench.program import Array, NotRunnable, program_of
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import TensorStructInfo

onnx: Any = import_module("onnx")  # it may not be there when types are checked

OPSET, IR_VERSION = 20, 10
"""The first version of the operators that has ``Gelu``, and one of the format for it."""

RESULT = "y"


def onnx_model(module: IRModule) -> Any:
    """``main`` as a ``ModelProto``; its parameters are ``x0 …``, its result is `RESULT`.

    Raises `NotRunnable` for an operator that is not written.
    """
    program = program_of(module)
    names = {**program.names, program.result: RESULT}
    writer = _Writer([], dict(program.constants))
    for step in program.steps:
        if step.operator not in _OPERATORS:
            raise NotRunnable(f"no operator {step.operator}")
        operands = [names[o] for o in step.operands]
        _OPERATORS[step.operator](writer, operands, names[step.result], step.attrs)
    graph = onnx.helper.make_graph(
        writer.nodes,
        "main",
        [_declared(p, names[p]) for p in program.params],
        [_declared(program.result, RESULT)],
        [onnx.numpy_helper.from_array(data, name) for name, data in writer.tensors.items()],
    )
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


def _declared(variable: Var, name: str) -> Any:
    """The value `name` with the type of `variable`; symbolic extents go by their names."""
    info = variable.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    shape = [d if isinstance(d, int) else dims.text(d) for d in info.dims]
    dtype = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(info.dtype))
    return onnx.helper.make_tensor_value_info(name, dtype, shape)


@dataclass(frozen=True, slots=True)
class _Writer:
    """The nodes so far, and the tensors that they read beside the parameters."""

    nodes: list[Any]
    tensors: dict[str, Array]

    def node(self, kind: str, operands: Sequence[str], result: str, **attrs: Attr) -> str:
        """Add a node; returns `result`."""
        self.nodes.append(onnx.helper.make_node(kind, operands, [result], **attrs))
        return result

    def tensor(self, name: str, data: Array) -> str:
        """Add a tensor; returns `name`."""
        self.tensors[name] = data
        return name


_Write = Callable[[_Writer, Sequence[str], str, Mapping[str, Attr]], object]


def _plain(kind: str) -> _Write:
    return lambda writer, operands, result, attrs: writer.node(kind, operands, result)


def _softmax(
    writer: _Writer, operands: Sequence[str], result: str, attrs: Mapping[str, Attr]
) -> None:
    writer.node("Softmax", operands, result, axis=attrs["axis"])


def _layer_norm(
    writer: _Writer, operands: Sequence[str], result: str, attrs: Mapping[str, Attr]
) -> None:
    last = _last(attrs)
    epsilon = attrs["epsilon"]
    writer.node("LayerNormalization", operands, result, axis=last, epsilon=epsilon)


def _rms_norm(
    writer: _Writer, operands: Sequence[str], result: str, attrs: Mapping[str, Attr]
) -> None:
    """Written out, as exporters do: both peers know the pattern."""
    x, weight = operands
    two = writer.tensor(f"{result}_two", np.array(2, np.float32))
    axes = writer.tensor(f"{result}_axes", np.array([_last(attrs)]))
    small = writer.tensor(f"{result}_epsilon", np.array(attrs["epsilon"], np.float32))
    square = writer.node("Pow", [x, two], f"{result}_square")
    mean = writer.node("ReduceMean", [square, axes], f"{result}_mean", keepdims=1)
    above = writer.node("Add", [mean, small], f"{result}_above")
    root = writer.node("Sqrt", [above], f"{result}_root")
    scaled = writer.node("Div", [x, root], f"{result}_scaled")
    writer.node("Mul", [scaled, weight], result)


def _last(attrs: Mapping[str, Attr]) -> int:
    if attrs["axes"] != (-1,):
        raise NotRunnable(f"axes {attrs['axes']}: needs (-1,)")
    return -1


_OPERATORS: Mapping[str, _Write] = {
    "add": _plain("Add"),
    "multiply": _plain("Mul"),
    "matmul": _plain("MatMul"),
    "tanh": _plain("Tanh"),
    "sigmoid": _plain("Sigmoid"),
    "nn.relu": _plain("Relu"),
    "nn.gelu": _plain("Gelu"),
    "nn.softmax": _softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
}
