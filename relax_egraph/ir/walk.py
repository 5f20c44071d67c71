"""Walks over expressions: children, bindings, free variables, constants."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.op import Op, is_pure

Leaf: TypeAlias = Var | Constant | ShapeExpr | PrimValue | StringImm | GlobalVar | ExternFunc
"""The operands of the normal form, besides tuples of them."""


METHODS: dict[type, str] = {
    Var: "visit_var",
    DataflowVar: "visit_dataflow_var",
    Constant: "visit_constant",
    ShapeExpr: "visit_shape_expr",
    PrimValue: "visit_prim_value",
    StringImm: "visit_string_imm",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    GlobalVar: "visit_global_var",
    ExternFunc: "visit_extern_func",
    Call: "visit_call",
    SeqExpr: "visit_seq_expr",
    If: "visit_if",
    Function: "visit_function",
}
"""The method of a visitor for each kind of expression."""


def is_leaf(expr: "Expr | Op") -> bool:
    """Whether `expr` may be an operand in normal form: no computation is nested in it."""
    if isinstance(expr, Tuple):
        return all(map(is_leaf, expr.fields))
    return isinstance(expr, Leaf)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside `expr`, in order of evaluation, without an `Op`."""
    match expr:
        case Call(op=callee, args=args):
            return args if isinstance(callee, Op) else (callee, *args)
        case Tuple(fields=fields):
            return fields
        case TupleGetItem(tuple_value=value):
            return (value,)
        case SeqExpr(body=body):
            return (*(b.value for b in bindings_of(expr)), body)
        case If(cond=cond, true_branch=true, false_branch=false):
            return (cond, true, false)
        case Function(body=body):
            return (body,)
        case _:
            return ()


def bindings_of(seq: SeqExpr) -> Iterator[Binding]:
    """The bindings of `seq`, those inside branches and local functions not included."""
    for block in seq.blocks:
        yield from block.bindings


def sequences_of(function: Function) -> Iterator[SeqExpr]:
    """The sequences of bindings of `function`: its body, branches, bodies of local functions."""
    waiting = [function.body]
    while waiting:
        seq = waiting.pop()
        yield seq
        for binding in bindings_of(seq):
            match binding.value:
                case If(true_branch=true, false_branch=false):
                    waiting += (true, false)
                case Function(body=body):
                    waiting.append(body)
                case _:
                    pass


def post_order_visit(expr: Expr, f: Callable[[Expr], object]) -> None:
    """Call `f` on every expression of `expr` after those inside it; on a variable at each use."""
    for child in children(expr):
        post_order_visit(child, f)
    f(expr)


def free_vars(expr: Expr) -> tuple[Var, ...]:
    """The variables that `expr` uses and does not define, each once, in order of first use."""
    used: dict[Var, None] = {}
    defined: set[Var] = set()

    def note(e: Expr) -> None:
        match e:
            case Var():
                used[e] = None
            case Function(params=params):
                defined.update(params)
            case SeqExpr():
                defined.update(b.var for b in bindings_of(e))
            case _:
                pass

    post_order_visit(expr, note)
    return tuple(v for v in used if v not in defined)


def variables_of(expr: Expr) -> tuple[Var, ...]:
    """The variables that are defined inside `expr`, those of inner scopes first."""
    variables: list[Var] = []

    def note(e: Expr) -> None:
        if isinstance(e, Function):
            variables.extend(e.params)
        elif isinstance(e, SeqExpr):
            variables.extend(b.var for b in bindings_of(e))

    post_order_visit(expr, note)
    return tuple(variables)


def constants_of(*exprs: Expr) -> tuple[Constant, ...]:
    """The constants in `exprs`, one for each array."""
    constants: dict[int, Constant] = {}

    def note(e: Expr) -> None:
        if isinstance(e, Constant):
            constants.setdefault(id(e.data), e)

    for expr in exprs:
        post_order_visit(expr, note)
    return tuple(constants.values())


def has_effects(expr: Expr) -> bool:
    """Whether the evaluation of `expr` may have effects; a function definition never has.

    The struct info of a function of the module says whether a call of it has.
    """
    if isinstance(expr, Function):
        return False
    if isinstance(expr, Call) and not is_pure(expr):
        return True
    return any(map(has_effects, children(expr)))
