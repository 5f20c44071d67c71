"""Conditionals and loops."""

from collections.abc import Sequence

from jaxlib.mlir import ir

from relax_egraph.frontends.building.functions import call_function, define, distinct
from relax_egraph.frontends.building.loops import TailLoop, define_loop
from relax_egraph.frontends.stablehlo.graph import convert_block
from relax_egraph.frontends.stablehlo.node import Node, like
from relax_egraph.frontends.stablehlo.regions import read_outside, surroundings
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.frontends.stablehlo.values import Scope, Value
from relax_egraph.ir.agreement import implies
from relax_egraph.ir.conditional import result_info
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Expr,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)


@converts("stablehlo.if")
def conditional(node: Node) -> Sequence[Expr | Value]:
    """One of two regions."""
    return _one_of(node, [node[0]] if node.elements(0) is None else [])


@converts("stablehlo.case")
def case(node: Node) -> Sequence[Expr | Value]:
    """One of several regions, by its number; the last for a number that none has."""
    if node.elements(0) is not None:
        return _one_of(node, [])
    numbers = range(len(node.operation.regions) - 1)
    return _one_of(node, [node.emit("equal", node[0], like(k, node[0])) for k in numbers])


def _one_of(node: Node, conditions: Sequence[Expr]) -> Sequence[Expr | Value]:
    """The results of the first region whose condition holds, else of the last one."""
    blocks = [region.blocks[0] for region in node.operation.regions]
    if not conditions and len(blocks) > 1:
        (chosen,) = node.known(0)
        if node.dtype(0) == "bool":
            chosen = 0 if chosen else 1
        number = chosen if 0 <= chosen < len(blocks) else -1
        blocks = [blocks[number]]
    if len(blocks) == 1:
        return convert_block(blocks[0], node.program, node.scope.nested())
    calls = _calls(node, blocks)
    branches: Expr = calls[-1]
    for condition, called in zip(reversed(conditions), reversed(calls[:-1]), strict=True):
        true, false = _branch(called), _branch(branches)
        branches = If(condition, true, false, result_info(true, false))
    return node.fields(node.bind(branches))


def _calls(node: Node, blocks: Sequence[ir.Block]) -> list[Call]:
    """Calls of a function for each of `blocks`, whose results are tuples."""
    around = surroundings(node, read_outside(node.operation))
    params = distinct(around.params())
    calls: list[Call] = []
    for block in blocks:

        def body(block: ir.Block = block) -> Expr:
            inner = around.inside(node, params)
            values = convert_block(block, node.program, inner)
            return Tuple(tuple(inner.expr(value) for value in values))

        name = node.program.function_name("branch")
        calls.append(call_function(define(node.scope.bb, name, params, body), around.exprs))
    return calls


def _branch(value: Expr) -> SeqExpr:
    var = Var("chosen", value.struct_info)
    return SeqExpr((BindingBlock((VarBinding(var, value),)),), var)


@converts("stablehlo.while")
def loop(node: Node) -> list[Expr | Value]:
    """A region, repeated while a condition on its state holds.

    What the region returns as it is is no state: all turns read the same.
    """
    test, body = (region.blocks[0] for region in node.operation.regions)
    bb = node.scope.bb
    returned = body.operations[len(body.operations) - 1].operation.operands
    places = range(len(node))
    fixed = {k: node.operation.operands[k] for k in places if returned[k] == body.arguments[k]}
    changing = [k for k in places if k not in fixed]
    state = tuple(node[k] for k in changing)
    infos = [value.struct_info for value in state]
    around = surroundings(node, [*read_outside(node.operation), *fixed.values()], infos)
    params = distinct([*(Var("state", info) for info in infos), *around.params()])
    carried, passed = params[: len(state)], params[len(state) :]

    def scope(block: ir.Block) -> Scope:
        inner = around.inside(node, passed)
        arguments = block.arguments
        inner.values.update({arguments[k]: inner[value] for k, value in fixed.items()})
        now = zip(changing, carried, strict=True)
        inner.values.update({arguments[k]: Value(param) for k, param in now})
        return inner

    def go_on() -> Expr:
        inner = scope(test)
        (condition,) = convert_block(test, node.program, inner)
        return inner.expr(condition)

    def turn() -> list[Expr]:
        inner = scope(body)
        values = convert_block(body, node.program, inner)
        after = [inner.expr(values[k]) for k in changing]
        return [
            *(
                value if implies(value.struct_info, info) else bb.emit_match_cast(value, info)
                for value, info in zip(after, infos, strict=True)
            ),
            *passed,
        ]

    names = node.program.function_name("loop"), node.program.function_name("loop_step")
    looping = define_loop(bb, TailLoop(names, params, slice(0, len(state)), go_on, turn))
    whole = node.bind(call_function(looping, (*state, *around.exprs)))
    results = {k: node.bind(TupleGetItem(whole, n)) for n, k in enumerate(changing)}
    return [results[k] if k in results else node.operands[k] for k in places]
