"""The importer: converts an ONNX model to a module."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import onnx

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.names import identifier
from relax_egraph.frontends.building.results import emit_results, module_of
from relax_egraph.frontends.onnx import operators as operators
from relax_egraph.frontends.onnx.frame import Frame, domain_of
from relax_egraph.frontends.onnx.graph import convert, initialize
from relax_egraph.frontends.onnx.model import Model
from relax_egraph.frontends.onnx.reading import opsets_of, read
from relax_egraph.frontends.onnx.tensors import dtype_of
from relax_egraph.frontends.onnx.values import Scope, Symbols, Value, check_rank
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.names import unused
from relax_egraph.ir.struct_info import ObjectStructInfo, StructInfo, TensorStructInfo, tensor

Shapes = Mapping[str, Sequence[int | str]]
"""The extents of inputs by name; a string is a symbol, or an expression over symbols."""


def import_model(
    model: str | os.PathLike[str] | onnx.ModelProto, shapes: Shapes | None = None
) -> IRModule:
    """See `relax_egraph.from_onnx`."""
    proto, store = read(model)
    graph = proto.graph
    constants = {t.name for t in graph.initializer}
    inputs = [i for i in graph.input if i.name not in constants]
    for name, count in Counter(i.name for i in inputs).items():
        if count > 1:
            raise ModelError(f"the model has {count} inputs {name!r}")
    overrides = dict(shapes or {})
    if strangers := overrides.keys() - {i.name for i in inputs}:
        has = ", ".join(i.name for i in inputs) or "none"
        raise ModelError(f"the model has no input {min(strangers)!r}; it has: {has}")
    symbols = Symbols(frozenset(_plain_names(inputs, overrides)))
    whole = Model(
        store,
        {(domain_of(f.domain), f.name): f for f in proto.functions},
        {v.name: extents for v in (*graph.value_info, *graph.output) if (extents := _declared(v))},
        symbols,
    )
    bb, names, numbers = BlockBuilder(fitting=True), set[str](), dict[str, int]()
    params = [
        Var(unused(identifier(i.name), names, numbers), _info(i, overrides.get(i.name), symbols))
        for i in inputs
    ]
    for param in params:
        check_rank(Value(param))
    values = {i.name: Value(p, None, _item(i.type)) for i, p in zip(inputs, params, strict=True)}
    scope = Scope(bb, values)
    frame = Frame(scope, whole, opsets_of(proto.opset_import), {})
    initialize(graph.initializer, frame)
    with bb.function("main", params):
        convert(graph.node, frame)
        if whole.problems:
            raise whole.refused()
        for output in graph.output:
            if output.name not in scope.values:
                raise ModelError(f"no node has the model's output {output.name!r}")
        outputs = [scope.expr(scope.values[o.name]) for o in graph.output]
        emit_results(bb, outputs)
    return module_of(bb)


def _plain_names(inputs: Sequence[onnx.ValueInfoProto], override: Shapes) -> set[str]:
    """The names that are alone an extent of an input."""
    names = {e for extents in override.values() for e in extents if isinstance(e, str)}
    for value in inputs:
        if value.name not in override:
            names |= {d.dim_param for d in _tensor_type(value.type).shape.dim}
    return {name for name in names if name.isidentifier()}


def _info(
    value: onnx.ValueInfoProto, override: Sequence[int | str] | None, symbols: Symbols
) -> StructInfo:
    """The struct info of an input."""
    kind = value.type.WhichOneof("value")
    if kind not in ("tensor_type", "optional_type", "sequence_type"):
        raise ModelError(f"input {value.name!r} is of {kind or 'no type'}, needs a tensor")
    if kind != "tensor_type":
        return ObjectStructInfo()
    described = value.type.tensor_type
    try:
        dtype = dtype_of(described.elem_type)
    except ModelError as refusal:
        raise ModelError(f"input {value.name!r}: {refusal}") from None
    if override is not None:
        extents = [symbols.named(e) if isinstance(e, str) else e for e in override]
        return tensor(tuple(extents), dtype)
    if not described.HasField("shape"):
        return tensor(None, dtype)
    shape = [
        _extent(dim, f"{value.name}_{axis}", symbols)
        for axis, dim in enumerate(described.shape.dim)
    ]
    return tensor(tuple(shape), dtype)


def _item(kind: onnx.TypeProto) -> TensorStructInfo:
    """The struct info of the tensors in a sequence, which may be optional."""
    if kind.WhichOneof("value") == "optional_type":
        return _item(kind.optional_type.elem_type)
    described = kind.sequence_type.elem_type.tensor_type
    if not described.elem_type:
        return TensorStructInfo()
    rank = len(described.shape.dim) if described.HasField("shape") else -1
    return tensor(None, dtype_of(described.elem_type), rank)


def _extent(dim: onnx.TensorShapeProto.Dimension, name: str, symbols: Symbols) -> Dim:
    if dim.HasField("dim_value"):
        if dim.dim_value < 0:
            raise ModelError(f"the extent {name} of an input is {dim.dim_value}")
        return dim.dim_value
    return symbols.named(dim.dim_param) if dim.dim_param else symbols.fresh(name)


def _tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor:
    return kind.tensor_type


def _declared(value: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    """The extents that the model declares for a tensor."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    extents = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else None for d in extents)
