"""Converts subgraphs to functions; free names of the subgraph become parameters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from relax_egraph.frontends.building.functions import call_function, define, distinct, untold
from relax_egraph.frontends.building.names import identifier
from relax_egraph.frontends.onnx.frame import Frame
from relax_egraph.frontends.onnx.graph import Poisoned, convert, initialize
from relax_egraph.frontends.onnx.order import free_names
from relax_egraph.frontends.onnx.values import Scope, Value
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Call, Constant, Expr, ShapeExpr, Tuple, Var
from relax_egraph.ir.struct_info import StructInfo


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The free names of a subgraph.

    `known` are numbers and constants, which need no parameter.  The other values are `exprs`: the
    first ones have the `names`, the last may be a shape that binds symbols.
    """

    known: Mapping[str, Value]
    names: tuple[str, ...]
    exprs: tuple[Expr, ...]

    def params(self) -> list[Var]:
        """Parameters for `exprs`."""
        names = list(map(identifier, self.names))
        names += ["passed"] * (len(self.exprs) - len(names))
        return [Var(n, e.struct_info) for n, e in zip(names, self.exprs, strict=True)]

    def inside(self, frame: Frame, params: Sequence[Var]) -> Frame:
        """The frame of a function with the parameters `params` for `exprs`."""
        values = dict(self.known)
        values.update((n, Value(p)) for n, p in zip(self.names, params, strict=False))
        scope = Scope(frame.scope.bb, values)
        return Frame(scope, frame.model, frame.opsets, frame.attributes, frame.depth + 1)


def surroundings(
    graph: onnx.GraphProto | None,
    frame: Frame,
    params: Iterable[StructInfo],
    more: Sequence[Expr] = (),
) -> Surroundings:
    """The free names of `graph`, in a function with `params` that also gets `more` arguments."""
    scope = frame.scope
    read = () if graph is None else dict.fromkeys(free_names(graph))
    outer = [n for n in read if n in scope.values]
    known = {n: v for n in outer if _is_known(v := scope.values[n])}
    names = tuple(n for n in outer if n not in known)
    exprs = [*(scope.expr(scope.values[n]) for n in names), *more]
    infos = (*params, *(e.struct_info for e in exprs))
    if missing := untold(_symbols(known.values()), infos):
        exprs.append(ShapeExpr(tuple(dims.symbol(s) for s in sorted(missing))))
    return Surroundings(known, names, tuple(exprs))


def convert_graph(graph: onnx.GraphProto, inputs: Sequence[Expr], frame: Frame) -> list[Expr]:
    """Convert `graph` inline; returns its outputs."""
    values = (Value(e) for e in inputs)
    frame.scope.values.update((i.name, v) for i, v in zip(graph.input, values, strict=False))
    initialize(graph.initializer, frame)
    convert(graph.node, frame)
    return [_output(o.name, frame.scope) for o in graph.output]


def call_graph(graph: onnx.GraphProto, name: str, frame: Frame) -> Call:
    """A call of a new function for `graph`, which has no inputs; the result is a tuple."""
    around = surroundings(graph, frame, ())
    params = distinct(around.params())
    inner = around.inside(frame, params)
    unique = frame.model.function_name(identifier(name))

    def body() -> Expr:
        return Tuple(tuple(convert_graph(graph, (), inner)))

    return call_function(define(frame.scope.bb, unique, params, body), around.exprs)


def _output(name: str, scope: Scope) -> Expr:
    if name not in scope.values:
        raise Poisoned
    return scope.expr(scope.values[name])


def _is_known(value: Value) -> bool:
    return value.elements is not None or isinstance(value.expr, Constant)


def _symbols(values: Iterable[Value]) -> set[str]:
    """The symbols in the elements of `values`."""
    each = (dims.symbols(dim) for value in values if value.elements for dim in value.elements.dims)
    return set[str]().union(*each)
