"""Models of other systems become modules; what reads them is imported when it is needed."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from relax_egraph.ir.module import IRModule

if TYPE_CHECKING:
    import onnx


def from_onnx(
    model: "str | os.PathLike[str] | onnx.ModelProto",
    *,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> IRModule:
    """The module whose ``main`` computes what `model` does, of a path or a protocol buffer.

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
    return importer.import_model(model, shapes)
