"""Recognition of loops with a known number of turns, which are pairs of tail-recursive functions.

    loop(turn, last, go_on, state…, lists…, around…) = step(…) if turn < last and go_on else state…
    step(turn, …) = loop(turn + 1, last, go_on, state'…, lists with an item each…, around…)

The states are tensors.  A list is only appended to, and nothing but the turn decides on the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import bindings_of, has_effects

Term: TypeAlias = Var | tuple[object, ...]
"""A variable, or an operator and its operands; a constant is its value."""


@dataclass(frozen=True, slots=True)
class TailLoop:
    """A loop: the functions `names`, and the parts of a turn, which are variables of ``step``.

    `bindings` compute the next `state` and the `items` of lists from `turn`, the variables `before`
    of the states, and the values `around`, which are the same in all turns.
    """

    names: tuple[str, str]
    turn: Var
    before: tuple[Var, ...]
    around: tuple[Var, ...]
    bindings: tuple[VarBinding, ...]
    state: tuple[Expr, ...]
    items: tuple[Expr, ...]


def tail_loop(module: IRModule, name: str) -> TailLoop | None:
    """The loop whose test is the function `name`; ``None`` if it is no such function."""
    loop = module[name]
    if not isinstance(loop, Function) or len(loop.params) < 3 or has_effects(loop.body):
        return None
    values = _values(loop.body)
    branch = _traced(loop.body.body, values)
    if not isinstance(branch, If):
        return None
    turn, last, go_on = loop.params[:3]
    test = _Terms(module).of(branch.cond, values)
    before_last = ("less", turn, last)
    both = (("logical_and", before_last, go_on), ("logical_and", go_on, before_last))
    stepped = _traced(branch.true_branch.body, _values(branch.true_branch))
    kept = _traced(branch.false_branch.body, _values(branch.false_branch))
    if test not in (before_last, *both) or not isinstance(kept, Tuple):
        return None
    if not isinstance(stepped, Call) or not isinstance(stepped.op, GlobalVar):
        return None
    carried = loop.params[3 : 3 + len(kept.fields)]
    if not _are(kept.fields, carried) or not _are(stepped.args, loop.params):
        return None
    return _turn(module, name, stepped.op.name, len(carried))


def _turn(module: IRModule, name: str, step_name: str, count: int) -> TailLoop | None:
    """The parts of the function `step_name`, which carries `count` states and lists."""
    step = module[step_name]
    if not isinstance(step, Function) or has_effects(step.body):
        return None
    bindings = tuple(bindings_of(step.body))
    values = _values(step.body)
    following = _traced(step.body.body, values)
    if not isinstance(following, Call) or not isinstance(following.op, GlobalVar):
        return None
    turn, *rest = step.params
    carried, around = rest[2 : 2 + count], rest[2 + count :]
    number, *others = following.args
    after, passed = others[2 : 2 + count], others[2 + count :]
    one = ("const", 1)
    if following.op.name != name or not _are((*others[:2], *passed), (*rest[:2], *around)):
        return None
    if _Terms(module).of(number, values) not in (("add", turn, one), ("add", one, turn)):
        return None
    appended = [_appended(_traced(a, values), var) for a, var in zip(after, carried, strict=True)]
    items = tuple(item for item in appended if item is not None)
    states = len(carried) - len(items)
    if any(item is not None for item in appended[:states]):
        return None
    computed = tuple(b for b in bindings if isinstance(b, VarBinding))
    if len(computed) < len(bindings):
        return None
    before, state = tuple(carried[:states]), tuple(after[:states])
    return TailLoop((name, step_name), turn, before, tuple(around), computed, state, items)


def _appended(value: Expr, sequence: Var) -> Expr | None:
    """The item that `value` appends to `sequence`, if it does."""
    match value:
        case Call(args=(ExternFunc(name="vm.builtin.sequence_append"), before, item)):
            return item if before is sequence else None
        case _:
            return None


def _values(body: Expr) -> Mapping[Var, Expr]:
    assert isinstance(body, SeqExpr)
    return {b.var: b.value for b in bindings_of(body) if isinstance(b, VarBinding)}


def _traced(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """The value of `expr`, which is no variable with a value."""
    while isinstance(expr, Var) and expr in values:
        expr = values[expr]
    return expr


def _are(exprs: Sequence[Expr], variables: Sequence[Var]) -> bool:
    return len(exprs) == len(variables) and all(
        a is b for a, b in zip(exprs, variables, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Terms:
    """Expressions as terms of operators; calls of functions of `module` are expanded."""

    module: IRModule

    def of(self, expr: Expr, values: Mapping[Var, Expr | Term]) -> Term:
        """`expr` as a term over variables without a value."""
        match expr:
            case Var() if expr in values:
                value = values[expr]
                return value if isinstance(value, tuple) else self.of(value, values)
            case Var():
                return expr
            case Constant() if expr.data.size == 1:
                return ("const", expr.data.item())
            case Tuple(fields=fields):
                return ("tuple", *(self.of(f, values) for f in fields))
            case TupleGetItem(tuple_value=inner, index=index):
                whole = self.of(inner, values)
                return ("field", whole, index)
            case Call(op=Op(name=name), args=args):
                return (name, *(self.of(a, values) for a in args))
            case Call(op=GlobalVar(name=name), args=args):
                callee = self.module[name]
                if not isinstance(callee, Function) or not callee.attrs.get("primitive"):
                    return ("call", name)
                operands = [self.of(a, values) for a in args]
                inside = dict[Var, Expr | Term](_values(callee.body))
                inside |= dict(zip(callee.params, operands, strict=True))
                return self.of(callee.body.body, inside)
            case _:
                return ("other", id(expr))
