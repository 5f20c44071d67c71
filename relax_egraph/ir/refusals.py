"""Bindings that may refuse their operands at run time: their requirements or claims are not proven.

A refusal is observable, so such a binding is not dropped, not moved before another one, and not
replaced by a value that is equal only where it does not refuse.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bind, implies, substituted
from relax_egraph.ir.assumptions import active, assuming
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    Var,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op, infer
from relax_egraph.ir.requirements import recording
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
)
from relax_egraph.ir.walk import bindings_of, children

DATA_DECIDES = frozenset({"tensor_to_shape", "dynamic_strided_slice", "check_indices"})
"""Operators that refuse some values of their operands."""

RESULT_IS_CHECKED = frozenset({"call_packed", "call_pure_packed", "call_inplace_packed"})
"""Intrinsics whose ``sinfo_args`` are checked, if there are any."""

_UNKNOWN = frozenset(
    {"invoke_closure", "invoke_pure_closure", "assert_op", "tag_of", "has_tag", "field_of"}
)
"""Intrinsics that call unknown functions, assertions, and those that need a tagged value."""


def operator_may_refuse(call: Call, op: Op) -> bool:
    """Whether the operands of `op`, not an intrinsic, are not proven to fit together.

    Windows apart, which are checked before the call: see `windows_may_overhang`.
    """
    try:
        return _judged(call, op).may_refuse
    except IllTyped:
        return True


def windows_may_overhang(call: Call, op: Op) -> bool:
    """Whether the windows of `op`, not an intrinsic, are not proven to fit into its operand."""
    return _judged(call, op).may_overhang


@dataclass(frozen=True, slots=True)
class _Judgement:
    """The result's struct info by the rule of an operator, and whether its call may refuse."""

    info: StructInfo
    may_refuse: bool
    may_overhang: bool


_JUDGED: dict[Hashable, _Judgement] = {}
_MOST = 1 << 14


def _judged(call: Call, op: Op) -> _Judgement:
    """The judgement of a call of `op`; raises `IllTyped` for operands that do not fit.

    Layers repeat, so answers are memoised by the struct info of the operands.
    """
    operands = tuple(repr(a) if isinstance(a, PrimValue) else a.struct_info for a in call.args)
    attrs = repr(call.attrs)  # text, as lists have no hash and 1 == True
    key = (active(), op, operands, attrs)
    judged = _JUDGED.get(key)
    if judged is None:
        with recording() as undecided:
            info = infer(call)
        known = op.name not in DATA_DECIDES and all(_is_known(a.struct_info, op) for a in call.args)
        if len(_JUDGED) >= _MOST:
            _JUDGED.clear()
        windows = [r for r in undecided if r.kind == "window"]
        may_refuse = len(windows) < len(undecided) or not known
        judged = _JUDGED[key] = _Judgement(info, may_refuse, bool(windows))
    return judged


def _is_known(info: StructInfo, op: Op) -> bool:
    """Whether the struct info of an operand decides all that `op` may require of it."""
    match info:
        case TensorStructInfo(dtype=dtype):
            alone = op.elementwise and len(op.operands) == 1
            return dtype is not None and (info.dims is not None or alone)
        case TupleStructInfo(fields=fields):
            return all(_is_known(f, op) for f in fields)
        case ShapeStructInfo(values=values):
            return values is not None
        case ObjectStructInfo():
            return False
        case _:
            return True


def proven(module: IRModule, value: Expr) -> StructInfo:
    """The proven struct info of `value`, not the declared one; of a call, that of its callee."""
    if not isinstance(value, Call):
        return value.struct_info
    match value.op:
        case GlobalVar(name=name) if name in module:
            callee = module[name]
            if not isinstance(callee, Function) or callee.attrs.get("primitive"):
                return value.struct_info
            return infer(replace(value, op=GlobalVar(name, callee.struct_info), sinfo_args=()))
        case Op() as op:
            return infer(value) if op.intrinsic else _judged(value, op).info
        case _:
            return value.struct_info


def holds(known: StructInfo, claim: StructInfo) -> bool:
    """Whether `claim` needs no check; a function cannot be checked before it is called."""
    match known, claim:
        case _, FuncStructInfo():
            return True
        case TensorStructInfo(), TensorStructInfo() if known is claim or known == claim:
            return True
        case TupleStructInfo(fields=a), TupleStructInfo(fields=b):
            return len(a) == len(b) and all(map(holds, a, b))
        case _:
            return implies(known, claim)


class Refusals:
    """The bindings and values of a module that may refuse; answers about functions are memoised.

    Packed functions that are `stated`, as rules say what they compute, return what calls claim.
    """

    def __init__(self, module: IRModule, stated: Collection[ExternFunc] = ()) -> None:
        self._module = module
        self._stated = stated
        self._functions: dict[str, bool] = {}

    def among(self, bindings: Iterable[Binding]) -> Iterator[Var]:
        """The variables of the `bindings` that may refuse, in order."""
        return (b.var for b in bindings if self.binding(b))

    def binding(self, binding: Binding) -> bool:
        """Whether the value of `binding` may refuse, or the declaration of its variable."""
        if isinstance(binding, MatchCast) or self.value(binding.value):
            return True
        return not holds(proven(self._module, binding.value), binding.var.struct_info)

    def value(self, value: Expr) -> bool:
        """Whether the evaluation of `value` may refuse; a function definition never does."""
        match value:
            case Function():
                return False
            case SeqExpr():
                return any(map(self.binding, bindings_of(value)))
            case If(true_branch=true, false_branch=false):
                return any(map(self._branch, (true, false), (value.struct_info,) * 2))
            case Call():
                return self._call(value) or any(map(self.value, value.args))
            case _:
                return any(map(self.value, children(value)))

    def _branch(self, branch: SeqExpr, claim: StructInfo) -> bool:
        return self.value(branch) or not holds(branch.struct_info, claim)

    def _call(self, call: Call) -> bool:
        match call.op:
            case Op(intrinsic=False) as op:
                return operator_may_refuse(call, op)
            case Op(name="call_pure_packed") if call.args[0] in self._stated:
                return False
            case Op(name=name) if name in RESULT_IS_CHECKED:
                return any(not implies(ObjectStructInfo(), claim) for claim in call.sinfo_args)
            case Op(name=name):
                return name in _UNKNOWN
            case GlobalVar(name=name) if name in self._module:
                return not self._fits(name, call) or self._function(name)
            case _:
                return True

    def _fits(self, name: str, call: Call) -> bool:
        """Whether the arguments are proven to fulfil the declarations of the parameters."""
        info = self._module[name].struct_info
        if not isinstance(info, FuncStructInfo) or info.params is None:
            return False
        infos = [a.struct_info for a in call.args]
        if len(infos) != len(info.params):
            return False
        values = bind(info.params, infos)
        unbound = frozenset[str]().union(*map(symbols_of, info.params)) - values.keys()
        values |= {s: dims.symbol(f"{name}.{s}") for s in unbound}
        wanted = (substituted(p, values) for p in info.params)
        return all(map(holds, infos, wanted))

    def _function(self, name: str) -> bool:
        """Whether the body of a function of the module may refuse; a recursive one may."""
        if name not in self._functions:
            self._functions[name] = True
            function = self._module[name]
            if isinstance(function, Function):
                with assuming(None):  # assumptions are about symbols of the caller
                    body, claim = function.body, function.ret_struct_info
                    fused = bool(function.attrs.get("primitive"))
                    self._functions[name] = not fused and self._branch(body, claim)
        return self._functions[name]
