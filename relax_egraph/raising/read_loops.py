"""The pass that replaces calls of loop functions by operators."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bind, implies, substituted
from relax_egraph.ir.expr import Call, Expr, Function, GlobalVar, ShapeExpr, Tuple, shape
from relax_egraph.ir.kernel import ANCHOR
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.passes.infra import Pass
from relax_egraph.passes.inline_functions import inlined
from relax_egraph.raising.function import Reason, read
from relax_egraph.raising.nests import nests_of
from relax_egraph.raising.worth import kernels_alone
from relax_egraph.tir.stmt import PrimFunc

NAMED = Reason("rules name it")
PROMISED = Reason('its attribute "anchor" promises a schedule')


def read_loops(named: Collection[str] = ()) -> Pass:
    """A pass that replaces calls of loop functions by the operators that compute the same.

        y = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((n, m), "float32"))
        -->
        y = R.multiply(x, R.const(2.0, "float32"))

    A function that is no composition of operators stays, and so does one with a schedule or the
    attribute ``opaque``, and one that rules have `named`: see `opaque_functions`.
    """
    return Pass("read_loops", 0, partial(_read_loops, named=named))


def _read_loops(module: IRModule, named: Collection[str]) -> IRModule:
    called = _called(module, named)
    readable = {n: f for n, f in called.items() if isinstance(f, Function)}
    if not readable:
        return module
    taken = set(module.functions)
    names = {name: unused(f"{name}_operators", taken) for name in readable}
    functions: dict[str, BaseFunc] = dict(module.functions)
    functions.update({names[name]: f for name, f in readable.items()})
    for name, function in module.relax_functions():
        if not function.attrs.get("primitive"):
            changed = _Caller(names, readable).visit_expr(function)
            assert isinstance(changed, Function)
            functions[name] = changed
    best = inlined(replace(module, functions=functions), names.values())
    kept = {n: f for n, f in best.functions.items() if n not in names.values()}
    return replace(best, functions=_without(kept, readable))


def opaque_functions(module: IRModule, named: Collection[str] = ()) -> Mapping[str, str]:
    """The loop functions that `module` calls and that stay as they are, each with the reason."""
    return {n: r.text for n, r in _called(module, named).items() if isinstance(r, Reason)}


def _called(module: IRModule, named: Collection[str]) -> dict[str, Function | Reason]:
    """What each loop function computes that a function of operators calls."""
    called: dict[str, Function | Reason] = {}
    if not any(isinstance(f, PrimFunc) for f in module.functions.values()):
        return called

    def visit(expr: Expr) -> None:
        name = _callee(expr)
        if name is not None and name not in called:
            callee = module.functions.get(name)
            if isinstance(callee, PrimFunc):
                called[name] = NAMED if name in named else _worth_it(callee)

    for _, function in module.relax_functions():
        if not function.attrs.get("primitive"):
            post_order_visit(function, visit)
    return called


def _worth_it(function: PrimFunc) -> Function | Reason:
    """What `function` computes, unless more operators fuse with none than it has nests."""
    if ANCHOR in function.attrs:
        return PROMISED
    operators = read(function)
    if isinstance(operators, Reason):
        return operators
    alone, nests = kernels_alone(operators), len(nests_of(function.body))
    if alone > nests:
        return Reason(f"{alone} of its operators fuse with none, its loops are {_nests(nests)}")
    return operators


def _nests(count: int) -> str:
    return "one nest" if count == 1 else f"{count} nests"


def _callee(expr: Expr) -> str | None:
    match expr:
        case Call(op=Op(name="call_tir"), args=(GlobalVar(name=name), *_)):
            return name
        case _:
            return None


def _without(
    functions: Mapping[str, BaseFunc], readable: Mapping[str, Function]
) -> dict[str, BaseFunc]:
    """`functions` without the private ones of `readable` that nothing calls any longer."""
    used: set[str] = set()

    def visit(expr: Expr) -> None:
        if isinstance(expr, GlobalVar):
            used.add(expr.name)

    for function in functions.values():
        if isinstance(function, Function):
            post_order_visit(function, visit)
    return {
        name: f
        for name, f in functions.items()
        if name in used or name not in readable or not f.attrs.get("private")
    }


class _Caller(ExprMutator):
    """Calls functions of operators, `names`, in place of the loop functions."""

    def __init__(self, names: Mapping[str, str], readable: Mapping[str, Function]) -> None:
        super().__init__()
        self._operators = names
        self._readable = readable

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        name = _callee(visited)
        if name is None or name not in self._readable or not isinstance(visited, Call):
            return visited
        function = self._readable[name]
        _, operands, *scalars = visited.args
        assert isinstance(operands, Tuple)
        params = [p.struct_info for p in function.params]
        args = _arguments(function, operands.fields, scalars, visited.struct_info)
        if args is None:
            return visited
        infos = [a.struct_info for a in args]
        values = bind(params, infos)
        result = substituted(function.ret_struct_info, values)
        fits = all(implies(i, substituted(p, values)) for i, p in zip(infos, params, strict=True))
        if not fits or not implies(result, visited.struct_info):
            return visited
        callee = GlobalVar(self._operators[name], function.struct_info)
        return Call(callee, args, struct_info=result, span=visited.span)


def _arguments(
    function: Function, operands: Sequence[Expr], scalars: Sequence[Expr], result: StructInfo
) -> tuple[Expr, ...] | None:
    """The arguments for `function`: tensors, then the sizes that tensors do not bind, if any.

    The sizes are the scalars of the call, then symbols of its result.
    """
    if len(function.params) == len(operands):
        return tuple(operands)
    sizes = function.params[-1].struct_info
    if len(function.params) != len(operands) + 1 or not isinstance(sizes, ShapeStructInfo):
        return None
    values = bind([function.ret_struct_info], [result])
    passed = [d for s in scalars if isinstance(s, ShapeExpr) for d in s.values]
    for size in (sizes.values or ())[len(passed) :]:
        known = values.get(dims.text(size))
        if known is None:
            return None
        passed.append(known)
    return (*operands, shape(passed))
