"""Releases objects after their last use, so that their memory can be reused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.walk import bindings_of, free_vars, variables_of
from relax_egraph.passes.infra import module_pass

_ALLOCATES = ("memory.alloc_storage", "call_", "invoke_", "unique")
"""The name prefixes of operators that may allocate memory."""

_VIEWS = ("memory.alloc_tensor", "reshape")
"""Operators whose result aliases the memory of the first operand."""


@module_pass(name="kill_after_last_use")
def kill_after_last_use(module: IRModule) -> IRModule:
    """Release storages, tensors and other objects after the last binding that uses them.

        y = R.call_packed("my.sort", x)
        z = R.call_packed("my.sum", y)
        -->
        y = R.call_packed("my.sort", x)
        z = R.call_packed("my.sum", y)
        R.vm.kill_object(y)

    Aliases are released together.  An object stays if the function allocates nothing afterwards:
    the return releases its registers anyway.  Parameters belong to the caller.
    """
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, function in module.relax_functions():
        names = {v.name for v in variables_of(function)}
        body = _Killer(module, names).killed(function.body, later=False)
        functions[name] = function if body is function.body else replace(function, body=body)
    return replace(module, functions=functions)


@dataclass(slots=True, eq=False)
class _Family:
    """Variables that alias the same memory, and the position of the last binding that uses one."""

    members: list[Var]
    last: int


class _Killer:
    """Rewrites one function; `names` are the names in use in it."""

    def __init__(self, module: IRModule, names: set[str]) -> None:
        self._module = module
        self._names = names

    def killed(self, seq: SeqExpr, *, later: bool) -> SeqExpr:
        """`seq` with its releases; `later` states whether memory may be allocated after it."""
        old = list(bindings_of(seq))
        asks = [later] * (len(old) + 1)
        for k in range(len(old) - 1, -1, -1):
            replaces = old[k].var is seq.body and not asks[k + 1] and _calls_function(old[k].value)
            asks[k] = asks[k + 1] or (not replaces and self._allocates(old[k].value))
        bindings = [self._inside(b, later=asks[k + 1]) for k, b in enumerate(old)]
        new: list[Binding] = []
        dying = self._dying(seq, old)
        for k, binding in enumerate(bindings):
            new.append(binding)
            for var in dying[k] if asks[k + 1] else ():
                value = call("vm.kill_object", var)
                name = unused("_", self._names)
                new.append(VarBinding(Var(name, value.struct_info), value))
        if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)):
            return seq
        return SeqExpr((BindingBlock(tuple(new)),), seq.body)

    def _inside(self, binding: Binding, *, later: bool) -> Binding:
        """`binding`, with the releases in the branches of its value."""
        match binding.value:
            case If(true_branch=true, false_branch=false) as branch:
                both = (self.killed(true, later=later), self.killed(false, later=later))
                if both == (true, false):
                    return binding
                value = replace(branch, true_branch=both[0], false_branch=both[1])
                return replace(binding, value=value)
            case _:
                return binding

    def _dying(self, seq: SeqExpr, bindings: Sequence[Binding]) -> list[list[Var]]:
        """For each binding, the variables to release after it, one for each value."""
        families: dict[Var, _Family] = {}
        for k, binding in enumerate(bindings):
            for var in free_vars(binding.value):
                if var in families:
                    families[var].last = k
            self._declare(binding, k, families)
        kept = {id(families[v]) for v in free_vars(seq.body) if v in families}
        dying: list[list[Var]] = [[] for _ in bindings]
        for family in dict.fromkeys(families.values()):
            if id(family) not in kept:
                dying[family.last] += family.members
        return dying

    def _declare(self, binding: Binding, k: int, families: dict[Var, _Family]) -> None:
        var, value = binding.var, binding.value
        if isinstance(value, Var):
            if value in families:  # an alias: one release is enough
                families[var] = families[value]
            return
        if not _is_object(var.struct_info):
            return
        family = _Family([var], k)
        match value:
            case Call(op=Op(name=name), args=[first, *_]) if name in _VIEWS:
                if first not in families and name == "memory.alloc_tensor":
                    return  # its storage is allocated outside of the branch
                others = [first]
            case Tuple() | TupleGetItem():
                others = list(free_vars(value))
            case Call() | If():
                others = []
            case _:
                return
        for other in others:
            if isinstance(other, Var) and other in families and families[other] is not family:
                joined = families[other]
                family.members = [*joined.members, *family.members]
                same = [name for name, one in families.items() if one is joined]
                families |= dict.fromkeys(same, family)
        families[var] = family

    def _allocates(self, value: Expr) -> bool:
        """Whether computing `value` may allocate memory."""
        match value:
            case If(true_branch=true, false_branch=false):
                both = (*bindings_of(true), *bindings_of(false))
                return any(self._allocates(b.value) for b in both)
            case Call(op=Op(name=name)):
                return name.startswith(_ALLOCATES)
            case Call(op=GlobalVar(name=name)):
                return isinstance(self._module[name], Function)
            case _:
                return isinstance(value, Call)


def _calls_function(value: Expr) -> bool:
    """Whether `value` calls a function; the last call is a tail call and replaces its caller."""
    return isinstance(value, Call) and isinstance(value.op, GlobalVar)


def _is_object(info: StructInfo) -> bool:
    """Whether a value of this kind may own memory."""
    if isinstance(info, TupleStructInfo):
        return any(map(_is_object, info.fields))
    return not isinstance(info, ShapeStructInfo | PrimStructInfo)
