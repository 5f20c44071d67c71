"""Regions as bodies of private functions: what they read from outside becomes parameters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxlib.mlir import ir

from relax_egraph.frontends.building.functions import untold
from relax_egraph.frontends.stablehlo.node import Node
from relax_egraph.frontends.stablehlo.values import Scope, Value
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Constant, Expr, ShapeExpr, Var
from relax_egraph.ir.struct_info import StructInfo


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What regions read from outside.

    `known` are constants and sizes, which need no parameter.  The other values are `exprs`: the
    first ones are the values `names`, the last may be a shape that binds symbols.
    """

    known: Mapping[ir.Value, Value]
    names: tuple[ir.Value, ...]
    exprs: tuple[Expr, ...]

    def params(self) -> list[Var]:
        """Parameters for `exprs`."""
        return [Var("around", e.struct_info) for e in self.exprs]

    def inside(self, node: Node, params: Sequence[Var]) -> Scope:
        """The scope of a function with the parameters `params` for `exprs`."""
        values = dict(self.known)
        values.update((n, Value(p)) for n, p in zip(self.names, params, strict=False))
        return Scope(node.scope.bb, values)


def surroundings(
    node: Node, values: Iterable[ir.Value], params: Iterable[StructInfo] = ()
) -> Surroundings:
    """The `values` that a function with further `params` reads."""
    scope = node.scope
    outer = {value: scope[value] for value in dict.fromkeys(values)}
    known = {name: value for name, value in outer.items() if _is_known(value)}
    names = tuple(name for name in outer if name not in known)
    exprs: list[Expr] = [scope.expr(outer[name]) for name in names]
    elements = [value.elements for value in known.values() if value.elements is not None]
    used = {symbol for each in elements for dim in each.dims for symbol in dims.symbols(dim)}
    if missing := untold(used, (*params, *(e.struct_info for e in exprs))):
        exprs.append(ShapeExpr(tuple(dims.symbol(s) for s in sorted(missing))))
    return Surroundings(known, names, tuple(exprs))


def _is_known(value: Value) -> bool:
    return value.elements is not None or isinstance(value.expr, Constant)


def read_outside(operation: ir.Operation) -> list[ir.Value]:
    """The values that the regions of `operation` read and do not compute."""
    own, read = set[ir.Value](), dict[ir.Value, None]()
    for block in _blocks(operation):
        own.update(block.arguments)
        for view in block.operations:
            own.update(view.operation.results)
            read.update(dict.fromkeys(view.operation.operands))
    return [value for value in read if value not in own]


def _blocks(operation: ir.Operation) -> Iterator[ir.Block]:
    for region in operation.regions:
        for block in region.blocks:
            yield block
            for view in block.operations:
                yield from _blocks(view.operation)
