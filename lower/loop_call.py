"""The call of a loop over time: the number of turns, and what becomes of its lists."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    PrimValue,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import bindings_of, post_order_visit
from relax_egraph.lower.tail_recursion import TailLoop


@dataclass(frozen=True, slots=True)
class LoopCall:
    """The call of a loop, for `times` turns: first `states`, and values from `around`."""

    call: Call
    times: Dim
    states: tuple[Expr, ...]
    around: tuple[Expr, ...]


def loop_call(function: Function, loop: TailLoop) -> LoopCall | None:
    """The call in `function`, if the loop begins at turn 0, and lists are only stacked."""
    values = {b.var: b.value for b in bindings_of(function.body) if isinstance(b, VarBinding)}
    found = [(v, c) for v, c in values.items() if isinstance(c, Call) and _calls(c, loop.names[0])]
    if len(found) != 1:
        return None
    ((result, call),) = found
    start, last, go_on, *rest = call.args
    times, count = _number(last, values), len(loop.before)
    lists = rest[count : count + len(loop.items)]
    begins = _number(start, values) == 0 and isinstance(go_on, Constant) and bool(go_on.data.all())
    if times is None or not begins or not all(map(_is_empty, lists)):
        return None
    sequences = {
        v
        for v, value in values.items()
        if isinstance(value, TupleGetItem) and value.tuple_value is result and value.index >= count
    }
    uses, stacks = Counter[Var](), 0

    def visit(e: Expr) -> None:
        nonlocal stacks
        if isinstance(e, Var):
            uses[e] += 1
        elif stacked(e) in sequences:
            stacks += 1

    post_order_visit(function.body, visit)
    fields = sum(isinstance(v, TupleGetItem) and v.tuple_value is result for v in values.values())
    if uses[result] != fields or sum(uses[v] for v in sequences) != stacks:
        return None
    around = rest[count + len(lists) :]
    return LoopCall(call, times, tuple(rest[:count]), tuple(around))


def _is_empty(expr: Expr) -> bool:
    return isinstance(expr, Tuple) and not expr.fields


def _calls(call: Call, name: str) -> bool:
    return isinstance(call.op, GlobalVar) and call.op.name == name


def stacked(expr: Expr) -> Expr | None:
    """The sequence that `expr` stacks along a new first axis, if it does."""
    match expr:
        case Call(
            args=(ExternFunc(name="vm.builtin.sequence_stack"), sequence, PrimValue(value=0), *_)
        ):
            return sequence
        case _:
            return None


def _number(expr: Expr, values: Mapping[Var, Expr]) -> Dim | None:
    """The number in `expr`, a tensor of one element, if it is known."""
    match expr:
        case Var() if expr in values:
            return _number(values[expr], values)
        case Constant() if expr.data.size == 1 and expr.data.dtype == "int64":
            return int(expr.data.item())
        case Call(op=Op(name="reshape" | "squeeze"), args=(whole, *_)):
            return _number(whole, values)
        case Call(op=Op(name="shape_to_tensor"), args=(ShapeExpr(values=(extent,)),)):
            return extent
        case _:
            return None
