"""Models of other systems become modules; what reads them is imported when it is needed."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from relax_egraph.base.parameters import SIZE, Kind, collection, mapping, optional, takes
from relax_egraph.ir.module import IRModule

if TYPE_CHECKING:
    import onnx


class HasProto(Protocol):
    """What has a protocol buffer: an ``ONNXProgram`` of torch."""

    @property
    def model_proto(self) -> "onnx.ModelProto":
        """The model."""
        ...


_MODEL = Kind(
    "a path, an onnx.ModelProto, or the ONNXProgram that torch.onnx.export returns",
    lambda value: isinstance(value, str | os.PathLike) or _has_proto(value),
)
_EXTENT = Kind(
    "a size, or the name of a symbol",
    lambda value: isinstance(value, str) or SIZE.has_type(value),
    lambda value: isinstance(value, str) or SIZE.in_range(value),
)
_SHAPES = mapping(
    "shapes by the names of inputs, such as {'x': [1, 'n', 224]}",
    collection("the extents of an input, such as [1, 'n', 224]", _EXTENT),
)


def _has_proto(model: object) -> bool:
    """Whether `model` is a protocol buffer, or has one; onnx need not be there."""
    return type(model).__name__ == "ModelProto" or hasattr(type(model), "model_proto")


@takes(model=_MODEL, shapes=optional(_SHAPES))
def from_onnx(
    model: "str | os.PathLike[str] | onnx.ModelProto | HasProto",
    *,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> IRModule:
    """The module whose ``main`` computes what `model` does.

    That is a path, a protocol buffer, or the ``ONNXProgram`` that ``torch.onnx.export`` returns.

    Inputs keep their names as far as names may be so; extents that the model names are symbols of
    that name, extents it does not say are symbols called after input and axis.  `shapes` say the
    extents of inputs otherwise: a text is a symbol.  Weights of a file are mapped, not read;
    external data are found beside the model, and nowhere else.  One output is given as it is,
    several as a tuple.

    Raises `ModelError` for a model that does not read, or which has nodes without a counterpart (it
    says all of them), and ``ImportError`` without the package onnx.
    """
    try:
        from relax_egraph.frontends.onnx import importer
    except ModuleNotFoundError as missing:
        if missing.name not in ("onnx", "google"):
            raise
        needed = "from_onnx needs the package onnx: pip install 'relax-egraph[onnx]'"
        raise ImportError(needed) from None
    proto: Any = getattr(model, "model_proto", model)
    return importer.import_model(proto, shapes)
