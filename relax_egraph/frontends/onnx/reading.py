"""Reads a model from the path of a file, or from a protocol buffer."""

import os
from collections.abc import Iterable
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.frame import domain_of
from relax_egraph.frontends.onnx.tensors import Store, mapped
from relax_egraph.frontends.onnx.texts import check_texts
from relax_egraph.frontends.onnx.wire import without_weights

OPSETS = (1, onnx.defs.onnx_opset_version())
"""The supported versions of ONNX's own operators."""

_MOST = 2**31 - 1
"""The supported versions of other operators."""


def read(model: str | os.PathLike[str] | onnx.ModelProto) -> tuple[onnx.ModelProto, Store]:
    """The model without its large tensors, and the store of these tensors.

    Raises `ModelError` for a malformed model; a file that cannot be opened raises ``OSError``.
    """
    if isinstance(model, onnx.ModelProto):
        return _checked(model), Store()
    path = Path(model)
    if not path.is_file() and path.exists() and not path.is_dir():
        raise ModelError(f"{path} is no regular file")
    data = mapped(path)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(without_weights(data))
    except DecodeError:
        raise ModelError(f"{path} is no ONNX model: it does not parse") from None
    return _checked(proto), Store(data, path.parent)


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The version of each domain; raises `ModelError` for an unsupported version."""
    opsets = {domain_of(o.domain): o.version for o in imports}
    for domain, version in opsets.items():
        least, most = (1, _MOST) if domain else OPSETS
        if not least <= version <= most:
            of = f"opset {version} of {domain}" if domain else f"opset {version}"
            raise ModelError(f"the model is of {of}, needs one from {least} to {most}")
    return opsets


def _checked(proto: onnx.ModelProto) -> onnx.ModelProto:
    if not proto.HasField("graph"):
        raise ModelError("the model has no graph")
    if not proto.graph.output:
        raise ModelError("the graph of the model has no outputs")
    check_texts(proto)
    return proto
