"""Importers of models of other systems; each loads its packages at first use."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from relax_egraph.base.parameters import ANYTHING, SIZE, Kind, collection, mapping, optional, takes
from relax_egraph.frontends.probed import Probed
from relax_egraph.ir.module import MODULE, IRModule

if TYPE_CHECKING:
    import onnx


class HasProto(Protocol):
    """An object with an ONNX protocol buffer, such as an ``ONNXProgram`` of torch."""

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
    """Whether `model` is or has a protocol buffer; works without the package onnx."""
    return type(model).__name__ == "ModelProto" or hasattr(type(model), "model_proto")


@takes(model=_MODEL, shapes=optional(_SHAPES))
def from_onnx(
    model: "str | os.PathLike[str] | onnx.ModelProto | HasProto",
    *,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> IRModule:
    """Import an ONNX model as a module, whose ``main`` is the graph of the model.

    `model` is a path, a protocol buffer, or the ``ONNXProgram`` that ``torch.onnx.export`` returns.

    Inputs keep their names where these are identifiers.  Named extents become symbols with that
    name; extents without a name become symbols named after input and axis.  `shapes`
    overrides the extents of inputs; a string is a symbol.  Weights of a file are memory-mapped;
    external data must be in the folder of the model.  A single output is returned directly,
    several as a tuple.

    Raises `ModelError` for a malformed model, or one with unsupported nodes, all of which it lists,
    and ``ImportError`` without the package onnx.
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


EXPORTED = Kind(
    "the ExportedProgram that torch.export.export returns, or the path of a .pt2 file",
    lambda value: isinstance(value, str | os.PathLike) or type(value).__name__ == "ExportedProgram",
)


@takes(program=EXPORTED)
def from_torch(program: Any) -> IRModule:
    """Import a program that ``torch.export.export`` returned as a module, with ``main``.

    `program` may also be the path of a file that ``torch.export.save`` wrote.

    Parameters of ``main`` are the tensors and integers that the program is called with, in
    order, under torch's names.  Weights are constants that share the memory of torch's.
    Dimensions have the names that ``dynamic_shapes`` gave them, or those of the first input and
    axis that have them: ``x_0``.

    ``main`` is pure: a buffer that the program writes is a further parameter, and its new value a
    further result, behind the user's results; so is the new value of an input that it writes.
    Complex inputs and results are real tensors whose last axis has the parts, as
    ``torch.view_as_real`` shows them.
    Results that are ``None`` or constant are left out; a single result is returned directly,
    several as a flat tuple.

    Raises `ModelError` for a program with unsupported operators, all of which it lists with where
    the program calls them, and ``ImportError`` without the package torch.
    """
    try:
        from relax_egraph.frontends.torch import exported, reading
    except ModuleNotFoundError as missing:
        raise _needs_torch("from_torch", missing) from None
    return exported.import_program(reading.read(program))


def probed_torch(program: Any) -> Probed:
    """A program like that of `from_torch`, whose ``main`` returns every value; see `Probed`."""
    try:
        from relax_egraph.frontends.torch import probes, reading
    except ModuleNotFoundError as missing:
        raise _needs_torch("diff", missing) from None
    return probes.probed(reading.read(program))


def _needs_torch(name: str, missing: ModuleNotFoundError) -> Exception:
    if missing.name != "torch":
        return missing
    return ImportError(f"{name} needs the package torch: pip install 'relax-egraph[torch]'")


_STABLEHLO = Kind(
    "text or bytecode of StableHLO, or the path of a file of it",
    lambda value: isinstance(value, str | bytes | os.PathLike),
)


@takes(source=_STABLEHLO)
def from_stablehlo(source: "str | bytes | os.PathLike[str]") -> IRModule:
    """Import a StableHLO module, whose function ``main`` becomes that of the result.

    `source` is text, bytecode (also of a portable artifact, as ``jax.export`` writes), or the path
    of a file that has either.  Functions are inlined where they are called; loops and branches
    are private functions.  Sizes that are not static are symbols: named as jax names them, or
    after the parameter and the axis.  A single result is returned directly, several as a tuple.

    Raises `ModelError` for a malformed module, or one with unsupported operations, all of which it
    lists with their locations, and ``ImportError`` without the package jaxlib.
    """
    try:
        from relax_egraph.frontends.stablehlo import importer, reading
    except ModuleNotFoundError as missing:
        raise _needs_jax("from_stablehlo", "jaxlib", missing) from None
    return importer.import_module(reading.read(source))


_FUNCTION = Kind(
    "a function that jax can trace, or what jax.export.export returned",
    lambda value: callable(value) or type(value).__name__ == "Exported",
)


@takes(function=_FUNCTION, args=ANYTHING)
def from_jax(function: Any, *args: Any) -> IRModule:
    """Import a function that jax can trace, for arguments like `args`.

    These are arrays, ``jax.ShapeDtypeStruct``, or trees of them; sizes of
    ``jax.export.symbolic_shape`` stay symbols of that name.  `function` may also be what
    ``jax.export.export`` returned, without arguments.  The parameters of ``main`` are the arrays
    in the order of jax's trees, named by parameter and path; a single result is returned directly,
    several as a flat tuple.

    Raises `ModelError` for a function with unsupported operations, all of which it lists with
    their locations, and ``ImportError`` without the package jax.
    """
    try:
        from relax_egraph.frontends.stablehlo import exported
    except ModuleNotFoundError as missing:
        raise _needs_jax("from_jax", "jax", missing) from None
    return exported.import_function(function, args)


@takes(module=MODULE)
def jax_call(module: IRModule) -> Callable[..., Any]:
    """`module`, optimized and built, as a function of jax's arrays that jitted functions may call.

    Sizes of results follow from those of the arguments.  Arguments are read where jax has them; jax
    copies the results.  It is called through ``jax.pure_callback``: on the CPU, once for each
    element under ``vmap``, and without a gradient.  Raises ``ImportError`` without the package jax.
    """
    try:
        from relax_egraph.frontends import jax_functions
    except ModuleNotFoundError as missing:
        raise _needs_jax("jax_call", "jax", missing) from None
    return jax_functions.jax_call(module)


def _needs_jax(name: str, package: str, missing: ModuleNotFoundError) -> Exception:
    if missing.name is None or missing.name.split(".")[0] not in ("jax", "jaxlib"):
        return missing
    return ImportError(f"{name} needs the package {package}: pip install 'relax-egraph[jax]'")
