"""Checks of a call in normal form: its arguments and its claimed result against its callee."""

from collections.abc import Iterator, Sequence

from relax_egraph.errors import IllTyped
from relax_egraph.ir.agreement import bind, relation, substituted
from relax_egraph.ir.expr import Call, Expr, ExternFunc, Function, GlobalVar, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS, Op, infer, is_pure
from relax_egraph.ir.ops.call import inplace_indices
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TupleStructInfo,
)


def callee_text(callee: "Op | Expr") -> str:
    """The callee, as a script writes it."""
    match callee:
        case GlobalVar(name=name):
            return f"cls.{name}"
        case ExternFunc(name=name):
            return f'"{name}"'
        case Var(name=name):
            return name
        case Op():
            return str(callee)
        case _:
            return "a computed function"


def is_pure_in(module: IRModule, call: Call) -> bool:
    """Whether `call` has no effects; the module decides for its own functions.

    A direct call of a loop function writes into its operands.
    """
    if isinstance(call.op, GlobalVar) and call.op.name in module:
        callee = module[call.op.name]
        return isinstance(callee, Function) and callee.is_pure
    return is_pure(call)


def breaches_of_call(module: IRModule, call: Call) -> Iterator[str]:
    """The breaches of law by `call`, a text for each; callees are looked up in `module`."""
    match call.op:
        case GlobalVar(name=name):
            callee = module[name]
            if isinstance(callee, Function):
                yield from _call(f"cls.{name}", callee.struct_info, call.args, call.struct_info)
            return
        case Op():
            try:
                known = infer(call)
            except IllTyped as refusal:
                yield f"is ill-typed: {refusal}"
                return
            if relation(call.struct_info, known) == "contradiction":
                yield f"is declared as {call.struct_info}, but {call.op} gives {known}"
            if call.op.name in ("call_tir", "call_tir_inplace"):
                yield from _call_tir(module, call)
        case callee:
            info = callee.struct_info
            if isinstance(info, FuncStructInfo):
                yield from _call(callee_text(callee), info, call.args, call.struct_info)
            elif not isinstance(info, ObjectStructInfo):
                yield f"calls {callee_text(callee)}, which is {info}, needs a function"


def _call(callee: str, info: StructInfo, args: Sequence[Expr], result: StructInfo) -> Iterator[str]:
    if not isinstance(info, FuncStructInfo) or info.params is None:
        return
    if len(args) != len(info.params):
        yield f"calls {callee} with {len(args)} arguments, it takes {len(info.params)}"
        return
    infos = [a.struct_info for a in args]
    values = bind(info.params, infos)
    for number, (param, arg) in enumerate(zip(info.params, infos, strict=True)):
        if relation(substituted(param, values), arg) == "contradiction":
            yield f"calls {callee}: argument {number} is {arg}, needs {param}"
            return
    known = substituted(info.ret, values)
    if relation(result, known) == "contradiction":
        yield f"is declared as {result}, but {callee} gives {known}"


def _call_tir(module: IRModule, call: Call) -> Iterator[str]:
    callee, operands, *tir_vars = call.args
    assert isinstance(callee, GlobalVar)
    assert isinstance(operands, Tuple)
    function = module[callee.name]
    info = function.struct_info
    if isinstance(function, Function) or not isinstance(info, FuncStructInfo):
        yield f"calls cls.{callee.name} by {call.op}: it is no loop function"
        return
    params = [p for p in info.params or () if not isinstance(p, PrimStructInfo)]
    scalars = len(info.params or ()) - len(params)
    args = [f.struct_info for f in operands.fields]
    claims = _allocated(call)
    results = _fields(info.ret)
    symbols = sum(getattr(s.struct_info, "ndim", 0) for s in tir_vars)
    for what, have, takes in (
        ("operands", len(args), len(params)),
        ("outputs", len(claims), len(results)),
        ("tir_vars", symbols, scalars),
    ):
        if have != takes:
            yield f"calls cls.{callee.name} with {have} {what}, it takes {takes}"
            return
    wanted, have = [*params, *results], [*args, *claims]
    values = bind(wanted, have)
    for number, (param, arg) in enumerate(zip(wanted, have, strict=True)):
        if relation(substituted(param, values), arg) == "contradiction":
            what = f"operand {number}" if number < len(args) else f"output {number - len(args)}"
            yield f"calls cls.{callee.name}: {what} is {arg}, needs {param}"


def _allocated(call: Call) -> tuple[StructInfo, ...]:
    """The claimed struct info of the results that are not operands."""
    claims = _fields(call.sinfo_args[0])
    if call.op is OPS["call_tir"]:
        return claims
    return tuple(s for s, place in zip(claims, inplace_indices(call), strict=True) if place < 0)


def _fields(info: StructInfo) -> tuple[StructInfo, ...]:
    return info.fields if isinstance(info, TupleStructInfo) else (info,)
