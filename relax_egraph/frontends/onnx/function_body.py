"""Function bodies: ONNX defines some operators by others."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import item_of
from relax_egraph.frontends.onnx.tensors import elem_type_of
from relax_egraph.frontends.onnx.values import Scope, Value
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import TensorStructInfo


def body_of(
    schema: Any,
    opset: int,
    proto: onnx.NodeProto,
    operands: Sequence[Value | None],
    scope: Scope,
) -> onnx.FunctionProto | None:
    """The function that defines the operator `schema` for these operands; ``None`` if primitive.

    `schema` is an ``onnx.defs.OpSchema``, whose type stub lacks the attributes used here.
    """
    if schema.has_function:
        versions = schema.function_opset_versions
        fitting = max((v for v in versions if v <= opset), default=min(versions))
        return onnx.FunctionProto.FromString(schema.get_function_with_opset_version(fitting))
    if not schema.has_context_dependent_function:
        return None
    types = [_type(operand, scope).SerializeToString() for operand in operands]
    versions = schema.context_dependent_function_opset_versions
    fitting = max((v for v in versions if v <= opset), default=min(versions))
    try:
        body = schema.get_context_dependent_function_with_opset_version(
            fitting, proto.SerializeToString(), types
        )
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"ONNX does not define it for these operands: {error}") from None
    if not body:
        raise ModelError("ONNX does not define it for these operands")
    return onnx.FunctionProto.FromString(body)


def _type(operand: Value | None, scope: Scope) -> onnx.TypeProto:
    if operand is None:
        return onnx.TypeProto()
    info = scope.expr(operand).struct_info
    if isinstance(info, TensorStructInfo):
        return _tensor_type(info)
    return helper.make_sequence_type_proto(_tensor_type(item_of(operand, info)))


def _tensor_type(info: TensorStructInfo) -> onnx.TypeProto:
    if info.dtype is None:
        raise ModelError("the dtype of an operand is not known")
    shape = None
    if info.dims is not None:
        shape = [d if isinstance(d, int) else dims.text(d) for d in info.dims]
    elif info.ndim >= 0:
        shape = [None] * info.ndim
    return helper.make_tensor_type_proto(elem_type_of(info.dtype), shape)


def with_attributes(
    proto: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]
) -> onnx.NodeProto:
    """`proto` with `attributes`, in which references to attributes of a function are resolved."""
    node = onnx.NodeProto()
    node.CopyFrom(proto)
    del node.attribute[:]
    node.attribute.extend(attributes.values())
    return node
