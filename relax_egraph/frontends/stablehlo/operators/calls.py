"""Custom calls that say how a program is distributed or checked."""

from dataclasses import replace

from relax_egraph.errors import ModelError
from relax_egraph.frontends.stablehlo.node import Node
from relax_egraph.frontends.stablehlo.program import Learned
from relax_egraph.frontends.stablehlo.reducers import direction
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, Expr, PrimValue, StringImm
from relax_egraph.ir.op import OPS, infer


@converts(
    "@Sharding",
    "@annotate_device_placement",
    "@xla.sdy.FuncResultSharding",
    "sdy.sharding_constraint",
)
def same(node: Node) -> Expr:
    """The operand: there is one processor."""
    return node[0]


@converts("@SPMDFullToShardShape", "@SPMDShardToFullShape")
def sharded(node: Node) -> Expr:
    """The operand, if a shard is the whole."""
    if [node.operation.operands[0].type] != [r.type for r in node.operation.results]:
        raise ModelError("the program is split over several processors")
    return node[0]


@converts("@shape_assertion")
def shape_assertion(node: Node) -> list[Expr]:
    """A check of the sizes of inputs, unless it is known to hold."""
    elements = node.elements(0)
    message = node.text("error_message")
    if elements is not None and elements.dims == (True,):
        return []
    if elements is not None and elements.dims == (False,):
        raise ModelError(f"it never holds: {message}")
    condition = _condition(node)
    text = StringImm(message.partition(" Using the following")[0].replace("{", "").replace("}", ""))
    check = Call(OPS["assert_op"], (condition, text))
    node.bind(replace(check, struct_info=infer(check)))
    return []


def _condition(node: Node) -> Expr:
    """The condition, of sizes if it compares some; raises `Learned` if a size is another one."""
    owner = node.operation.operands[0].owner
    if getattr(owner, "name", "") != "stablehlo.compare":
        return node[0]
    elements = [node.scope[value].elements for value in owner.operands]
    sizes = [e.dims[0] for e in elements if e is not None and len(e.dims) == 1]
    if len(sizes) < 2:
        return node[0]
    left, right = sizes
    way = direction(owner)
    if way == "EQ" and node.program.learning:
        for size, other in ((left, right), (right, left)):
            if _is_symbol(size) and dims.text(size) not in dims.symbols(other):
                raise Learned(dims.text(size), other)
    if way != "GE":
        return node[0]
    if right == 1 and _is_symbol(left):
        node.program.positive.add(dims.text(left))
    return node.emit("prim_less_equal", PrimValue(right), PrimValue(left))


def _is_symbol(dim: Dim) -> bool:
    return not isinstance(dim, int) and bool(dim.is_Symbol)
