"""Inlining of private functions."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bind, implies
from relax_egraph.ir.call_rules import is_pure_in
from relax_egraph.ir.expr import (
    Call,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.names import unused
from relax_egraph.ir.occurrences import symbols_in
from relax_egraph.ir.refusals import Refusals
from relax_egraph.ir.struct_info import StructInfo, TupleStructInfo
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import bindings_of, post_order_visit
from relax_egraph.passes.dead_code import callees, reachable
from relax_egraph.passes.infra import module_pass
from relax_egraph.passes.splicing import Splicer


@module_pass(name="inline_private_functions", opt_level=1)
def inline_private_functions(module: IRModule) -> IRModule:
    """Replace calls of private functions by their bodies, and drop the functions.

        y = cls.layer(x, w)
        -->
        lv = R.matmul(x, w)
        y = R.nn.relu(lv)

    The symbols of the function become dimensions of the caller.  Where an argument, or the result,
    is not proven to match its declaration, an ``R.match_cast`` checks it and binds symbols that
    nothing else binds.  Public, ``primitive`` and recursive functions stay, and so do functions
    that are used as values.  A call in a dataflow block stays if the function has effects,
    conditionals or local functions.
    """
    return inlined(module)


@module_pass(name="inline_called_once", opt_level=1)
def inline_called_once(module: IRModule) -> IRModule:
    """Inline private functions that are mentioned once.

    The module does not grow, and saves a call with its checks of arguments.  A call that may fail
    stays: messages name the function.
    """
    once = {name for name, n in mentions(module).items() if n == 1}
    return inlined(module, once - with_refusing_calls(module, once))


def mentions(module: IRModule) -> Counter[str]:
    """The number of times that each function of the module is mentioned."""
    uses = Counter[str]()

    def count(expr: Expr) -> None:
        if isinstance(expr, GlobalVar):
            uses[expr.name] += 1

    for _, function in module.relax_functions():
        post_order_visit(function, count)
    return uses


def with_refusing_calls(module: IRModule, among: Collection[str]) -> set[str]:
    """The functions of `among` with a call that may fail."""
    refusals = Refusals(module)
    refusing = set[str]()

    def visit(expr: Expr) -> None:
        match expr:
            case Call(op=GlobalVar(name=name)) if name in among and refusals.value(expr):
                refusing.add(name)
            case _:
                pass

    if any(module[name].attrs.get("private") for name in among if name in module):
        for _, function in module.relax_functions():
            post_order_visit(function, visit)
    return refusing


def inlined(module: IRModule, among: Collection[str] | None = None) -> IRModule:
    """`module` with the calls of private functions, or of those in `among`, inlined."""
    inliner = _Module(module, among)
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, _ in module.relax_functions():
        functions[name] = inliner.expanded(name)
    kept = reachable(functions, [n for n in functions if n not in inliner.inlinable])
    functions = {n: f for n, f in functions.items() if n in kept}
    if len(kept) == len(module.functions) and all(functions[n] is module[n] for n in functions):
        return module
    return replace(module, functions=functions)


class _Module:
    """The functions of a module; each is expanded once, after its callees."""

    def __init__(self, module: IRModule, among: Collection[str] | None = None) -> None:
        self.module = module
        self.inlinable = {
            name
            for name, function in module.relax_functions()
            if function.attrs.get("private")
            and (among is None or name in among)
            and not function.attrs.get("primitive")
            and name not in reachable(module.functions, callees(function))
        }
        self._done: dict[str, Function] = {}

    def expanded(self, name: str) -> Function:
        """The function `name`, with its callees inlined."""
        if name not in self._done:
            function = self.module[name]
            assert isinstance(function, Function)
            changed = _Inliner(self, function).visit_expr(function)
            assert isinstance(changed, Function)
            if changed is not function:
                changed = replace(changed, ret_struct_info=function.ret_struct_info)
            self._done[name] = changed
        return self._done[name]


class _Inliner(Splicer):
    """Rewrites one function; `symbols` are its symbols so far."""

    def __init__(self, module: _Module, function: Function) -> None:
        super().__init__()
        self._module = module
        self._symbols = set(symbols_in(function))

    def visit_var_binding(self, binding: VarBinding) -> None:
        match binding.value:
            case Call(op=GlobalVar(name=name), args=args) if name in self._module.inlinable:
                callee = self._module.expanded(name)
                if not self.in_dataflow or _is_straight(callee, self._module.module):
                    result = self._inlined(callee, tuple(map(self.visit_expr, args)))
                    self.emit_binding(VarBinding(binding.var, result))
                    return
            case _:
                pass
        super().visit_var_binding(binding)

    def _inlined(self, callee: Function, args: tuple[Expr, ...]) -> Expr:
        """Emit the body of `callee` for `args`; returns its result."""
        params = [p.struct_info for p in callee.params]
        values = bind(params, [a.struct_info for a in args])
        for name in sorted(symbols_in(callee) - values.keys()):
            values[name] = dims.canonical(dims.symbol(unused(name, self._symbols)))
        infos = Substitution(values).info
        claims = [infos(p) for p in params]
        operands = self._checked(callee, args, claims)
        body = Substitution(
            values,
            dict(zip(callee.params, operands, strict=True)),
            names=self._names,
            local=self.in_dataflow,
        ).sequence(callee.body)
        for block in body.blocks:
            self.splice(block)
        promised = infos(callee.ret_struct_info)
        if implies(body.body.struct_info, promised):
            return body.body
        return self._cast("result", body.body, promised)

    def _checked(
        self, callee: Function, args: tuple[Expr, ...], claims: list[StructInfo]
    ) -> list[Expr]:
        """`args`, with one cast of the arguments whose claims are not proven."""
        operands = list(args)
        open_ = [k for k, claim in enumerate(claims) if not implies(args[k].struct_info, claim)]
        if len(open_) == 1:
            (k,) = open_
            operands[k] = self._cast(callee.params[k].name, args[k], claims[k])
        elif open_:
            # one cast for all: it binds every symbol before it compares any dimension
            together = TupleStructInfo(tuple(claims[k] for k in open_))
            cast = self._cast("args", Tuple(tuple(args[k] for k in open_)), together)
            for place, k in enumerate(open_):
                operands[k] = self.emit(TupleGetItem(cast, place), callee.params[k].name)
        return operands

    def _cast(self, name: str, value: Expr, claim: StructInfo) -> Var:
        kind = DataflowVar if self.in_dataflow else Var
        var = kind(self._fresh(name), claim)
        self.emit_binding(MatchCast(var, value, claim))
        return var


def _is_straight(function: Function, module: IRModule) -> bool:
    """Whether the body may be part of a dataflow block."""
    values = [b.value for b in bindings_of(function.body)]
    if any(isinstance(v, If | Function) for v in values):
        return False
    return all(is_pure_in(module, v) for v in values if isinstance(v, Call))
