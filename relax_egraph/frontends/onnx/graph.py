"""Converts the nodes of a graph to bindings of a function."""

from collections.abc import Iterable, Mapping, Sequence

import onnx

from relax_egraph.errors import ModelError, RelaxEgraphError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.elements import of_dims
from relax_egraph.frontends.onnx.attributes import Attributes
from relax_egraph.frontends.onnx.folding import folded
from relax_egraph.frontends.onnx.frame import Frame, domain_of
from relax_egraph.frontends.onnx.function_body import body_of, with_attributes
from relax_egraph.frontends.onnx.model import Problem
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.order import ordered
from relax_egraph.frontends.onnx.reading import opsets_of
from relax_egraph.frontends.onnx.registry import Converter, converter_of, signature_of
from relax_egraph.frontends.onnx.signatures import Signature, of_schema
from relax_egraph.frontends.onnx.texts import DEEPEST
from relax_egraph.frontends.onnx.values import Scope, Value, check_rank, of_expr
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr
from relax_egraph.ir.struct_info import TensorStructInfo, tensor

_MOST_SIZE = 2**63 - 1


class Poisoned(Exception):
    """A node reads a value that could not be converted."""


def convert(nodes: Iterable[onnx.NodeProto], frame: Frame) -> None:
    """Convert `nodes`; failures become problems of the model, without outputs in scope."""
    if frame.depth > DEEPEST:
        raise ModelError(f"functions and graphs are nested more than {DEEPEST} deep")
    failed, outputs = set[str](), set[str]()
    for proto in ordered(nodes, _known_names(frame)):
        frame.model.count_node()
        try:
            if failed.intersection(proto.input):
                raise Poisoned
            if twice := outputs.intersection(proto.output):
                raise ModelError(f"its output {min(twice)!r} is also that of an earlier node")
            outputs.update(filter(None, proto.output))
            _convert(proto, frame)
        except (Poisoned, RelaxEgraphError) as refusal:
            lost = set(filter(None, proto.output))
            failed |= lost
            frame.model.failed |= lost
            if not isinstance(refusal, Poisoned):
                frame.model.problems.append(_problem(proto, refusal, frame))


def _known_names(frame: Frame) -> Iterable[str]:
    """The names of tensors with symbolic elements."""
    return (name for name, value in frame.scope.values.items() if value.elements is not None)


def _problem(proto: onnx.NodeProto, refusal: Exception, frame: Frame) -> Problem:
    domain = domain_of(proto.domain)
    return Problem(
        proto.name or next(filter(None, proto.output), ""),
        ".".join(filter(None, (domain, proto.op_type))),
        frame.opsets.get(domain, 1),
        str(refusal),
    )


def initialize(tensors: Iterable[onnx.TensorProto], frame: Frame) -> None:
    """Bind the names of `tensors` to constants."""
    for proto in tensors:
        constant = Constant(frame.model.store.array(proto))
        frame.scope.values[proto.name] = of_expr(constant)


def _convert(proto: onnx.NodeProto, frame: Frame) -> None:
    model, domain = frame.model, domain_of(proto.domain)
    operands = tuple(_operand(name, frame) for name in proto.input)
    explicit = {a.name: a for a in _attributes(proto, frame.attributes)}
    own = model.functions.get((domain, proto.op_type))
    if own is not None:
        _inline(own, explicit, operands, proto.output, frame)
        return
    opset = frame.opsets.get(domain)
    if opset is None:
        raise ModelError(f"the model imports no opset of the domain {domain!r}")
    signature = _signature(proto.op_type, opset, domain)
    signature.check_arity(len(operands))
    signature.check_attributes(explicit)
    attrs = Attributes(explicit, signature.defaults)
    outputs = tuple(proto.output)
    if known := _known(proto.op_type if not domain else "", operands, attrs, frame):
        _bind(outputs, [known], frame)
        return
    converter = converter_of(domain, proto.op_type)
    if converter is not None:
        node = Node(proto.op_type, signature.version, attrs, operands, outputs, frame)
        result = _converted(converter, node)
        results = list(result) if isinstance(result, Sequence) else [result]
        _bind(outputs, [None if r is None else of_expr(r) for r in results], frame)
        return
    assert signature.schema is not None
    body = body_of(signature.schema, opset, with_attributes(proto, explicit), operands, frame.scope)
    if body is None:
        raise ModelError("the operator is not supported")
    _inline(body, {**signature.defaults, **explicit}, operands, proto.output, frame)


def _converted(converter: Converter, node: Node) -> Expr | Sequence[Expr | None]:
    """The result of `converter` on `node`; its errors on counts and numbers become `ModelError`."""
    try:
        return converter(node)
    except RelaxEgraphError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelError(f"its operands and attributes do not fit together: {error}") from error


def _operand(name: str, frame: Frame) -> Value | None:
    if not name:
        return None
    if name in frame.scope.values:
        return frame.scope.values[name]
    if name in frame.model.failed:  # defined outside of the graph of the node
        raise Poisoned
    raise ModelError(f"its operand {name!r} is not the output of an earlier node")


def _attributes(
    proto: onnx.NodeProto, explicit: Mapping[str, onnx.AttributeProto]
) -> Iterable[onnx.AttributeProto]:
    """The attributes of a node, with references to attributes of its function resolved."""
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            yield attribute
        elif (referred := explicit.get(attribute.ref_attr_name)) is not None:
            named = onnx.AttributeProto()
            named.CopyFrom(referred)
            named.name = attribute.name
            yield named


def _signature(op: str, opset: int, domain: str) -> Signature:
    known = of_schema(op, opset, domain) or signature_of(domain, op)
    if known is None:
        where = f" of {domain}" if domain else ""
        raise ModelError(f"opset {opset}{where} has no operator {op}")
    return known


def _known(
    op: str, operands: Sequence[Value | None], attrs: Attributes, frame: Frame
) -> Value | None:
    """The elements of the result, if the node is shape arithmetic on symbolic elements."""
    if op in ("Shape", "Size") and operands and (first := operands[0]) is not None:
        shape = _extents(first)
        if shape is None:
            return None
        if op == "Size":
            size = dims.product(shape)
            return None if isinstance(size, int) and size > _MOST_SIZE else _scalar(size)
        cut = shape[slice(attrs.schema_default("start"), attrs.schema_default("end"))]
        return Value(elements=of_dims(cut, (len(cut),)))
    if any(o is not None and o.elements is None for o in operands) or not any(operands):
        return None
    each = [None if o is None else o.elements for o in operands]
    elements = folded(op, each, attrs, frame.scope.bb.is_nonnegative)
    return None if elements is None else Value(elements=elements)


def _scalar(dim: Dim) -> Value:
    return Value(elements=of_dims([dim], ()))


def _extents(value: Value) -> tuple[Dim, ...] | None:
    """The shape of `value`, if known."""
    if value.elements is not None:
        return value.elements.array.shape
    assert value.expr is not None
    return info_of(value.expr).dims


def _bind(outputs: Sequence[str], values: Sequence[Value | None], frame: Frame) -> None:
    """Bind the names of the node's outputs to `values`."""
    wanted = [k for k, name in enumerate(outputs) if name]
    if wanted and (wanted[-1] >= len(values) or any(values[k] is None for k in wanted)):
        raise ModelError(f"it has {len(outputs)} outputs, but only {len(values)} are supported")
    for k in wanted:
        value = values[k]
        assert value is not None
        check_rank(value)
        frame.scope.values[outputs[k]] = _as_declared(outputs[k], value, frame)


def _as_declared(name: str, value: Value, frame: Frame) -> Value:
    """`value`, with declared extents in place of extents that are computed at run time."""
    declared, info = frame.model.declared.get(name), value.expr and value.expr.struct_info
    if declared is None or not isinstance(info, TensorStructInfo) or frame.attributes:
        return value
    shape = info.dims
    if shape is None:
        extents = [
            frame.model.symbols.computed(f"{name}_{axis}") if extent is None else extent
            for axis, extent in enumerate(declared)
        ]
    elif len(shape) != len(declared):
        return value
    else:
        extents = [
            claim if claim is not None and frame.model.symbols.is_computed(extent) else extent
            for extent, claim in zip(shape, declared, strict=True)
        ]
    if shape is not None and tuple(extents) == shape:
        return value
    assert value.expr is not None
    claimed = tensor(tuple(extents), info.dtype)
    return Value(frame.scope.bb.emit_match_cast(value.expr, claimed))


def _inline(
    function: onnx.FunctionProto,
    explicit: Mapping[str, onnx.AttributeProto],
    operands: Sequence[Value | None],
    outputs: Sequence[str],
    frame: Frame,
) -> None:
    """Convert the body of `function` in place of a call."""
    model = frame.model
    most = len(function.input)
    if any(operands[most:]):
        raise ModelError(f"it has {len(operands)} operands, takes at most {most}")
    values = {name: value for name, value in zip(function.input, operands, strict=False) if value}
    defaults = {a.name: a for a in function.attribute_proto}
    opsets = {**frame.opsets, **opsets_of(function.opset_import)}
    inner = Frame(
        Scope(frame.scope.bb, values),
        model,
        opsets,
        {**defaults, **explicit},
        frame.depth + 1,
    )
    before = len(model.problems)
    convert(function.node, inner)
    if len(model.problems) > before:
        raise Poisoned
    results = [inner.scope.values.get(name) for name in function.output]
    _bind(outputs, results, frame)
