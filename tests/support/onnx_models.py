"""Small ONNX models, as a user's exporter would write them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper, numpy_helper

import relax_egraph as rx
from relax_egraph.errors import ModelError

Array = npt.NDArray[Any]

Extents = Sequence[int | str | None]


def value(name: str, shape: Extents | None, dtype: str = "float32") -> onnx.ValueInfoProto:
    """An input or output; a text names a dimension, ``None`` is an unnamed one, or no shape."""
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, elem_type, shape)


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> onnx.NodeProto:
    """A node; names are separated by spaces, and ``_`` is an absent one."""
    named = ["" if n == "_" else n for n in inputs.split()]
    return helper.make_node(op, named, outputs.split(), name=attrs.pop("name", None), **attrs)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Mapping[str, Array] | None = None,
    *,
    opset: int = 21,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of one graph."""
    tensors = [numpy_helper.from_array(a, name) for name, a in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions))


def refusal(proto: onnx.ModelProto | Path) -> str:
    """The message of the refusal of a model."""
    with pytest.raises(ModelError) as raised:
        rx.from_onnx(proto)
    return str(raised.value)


def one(proto: onnx.NodeProto, weights: Mapping[str, Array] | None = None) -> onnx.ModelProto:
    """A model of one node, which computes y from x."""
    return model([proto], [value("x", ["n", 4])], [value("y", None)], weights)


def in_words(text: str) -> str:
    """The single reason in `text`."""
    head, _, reason = text.partition(":\n  ")
    assert head == "the model has a node that cannot be converted"
    return reason
