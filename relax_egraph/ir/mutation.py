"""Mutation: the tensors of a function that a call may overwrite."""

from relax_egraph.ir.call_rules import is_pure_in
from relax_egraph.ir.expr import Call, Expr, Function, If, SeqExpr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.walk import bindings_of, free_vars, post_order_visit

_IN_PLACE = frozenset({"call_tir_inplace", "call_inplace_packed"})
"""The intrinsics that write into their operands."""

_ALLOCATE = frozenset({"call_tir", "call_dps_packed"})
"""The intrinsics whose results are all new tensors."""


def writes_operands(module: IRModule, call: Call) -> bool:
    """Whether `call` may write into its operands.

    ``R.call_tir_inplace`` and ``R.call_inplace_packed`` do, and a function or a closure that has
    effects may; any other packed function does not, by contract.
    """
    return not is_pure_in(module, call) and call.op is not OPS["call_packed"]


def writes_in_place(function: Function) -> bool:
    """Whether `function`, or a local function of it, has a call that writes in place."""
    calls: list[Call] = []

    def note(expr: Expr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _IN_PLACE:
            calls.append(expr)

    post_order_visit(function, note)
    return bool(calls)


def written_variables(function: Function, module: IRModule) -> frozenset[Var]:
    """The variables whose tensors a call in `function`, or in a local function, may change.

    A tensor may have several variables: another name, a field of a tuple, the result of a
    branch, a function's result that is an argument or a captured value.  The result of an
    operator is a tensor of its own.  There are none in a module that writes none in place.
    """
    names = _SharedNames()
    written: list[Var] = []

    def note(expr: Expr) -> None:
        match expr:
            case SeqExpr():
                for binding in bindings_of(expr):
                    names.share([binding.var, *_shared_with(binding.value)])
            case Call() if writes_operands(module, expr):
                written.extend(free_vars(expr))
            case _:
                pass

    post_order_visit(function, note)
    if not written or not any(writes_in_place(f) for _, f in module.relax_functions()):
        return frozenset()
    changed = set(map(names.first, written))
    return frozenset(v for v in names.all if names.first(v) in changed)


def _shared_with(value: Expr) -> tuple[Var, ...]:
    """The variables whose tensors `value` may be, have as fields, or have captured."""
    match value:
        case Call(op=Op() as op) if not op.intrinsic or op.name in _ALLOCATE:
            return ()
        case SeqExpr(body=body):
            return free_vars(body)
        case If(true_branch=true, false_branch=false):
            return (*_shared_with(true), *_shared_with(false))
        case _:
            return free_vars(value)


class _SharedNames:
    """Variables in groups: those of one group may be the same tensor."""

    def __init__(self) -> None:
        self.all: dict[Var, Var] = {}

    def first(self, var: Var) -> Var:
        """The representative of the group of `var`."""
        path: list[Var] = []
        while (parent := self.all.setdefault(var, var)) is not var:
            path.append(var)
            var = parent
        self.all.update(dict.fromkeys(path, var))
        return var

    def share(self, variables: list[Var]) -> None:
        """Put `variables` into one group."""
        first, *others = map(self.first, variables)
        self.all.update(dict.fromkeys(others, first))
