"""Lambda lifting (Johnsson, 1985): local functions become functions of the module."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols, stronger
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import (
    Call,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.names import unused
from relax_egraph.ir.occurrences import shape_variables_in, shape_variables_of, symbols_in
from relax_egraph.ir.op import OPS, infer, is_pure
from relax_egraph.ir.struct_info import ObjectStructInfo, ShapeStructInfo, symbols_of
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import children, free_vars, variables_of
from relax_egraph.passes.infra import module_pass


@module_pass(name="lambda_lift")
def lambda_lift(module: IRModule) -> IRModule:
    """Move local functions out; captured variables become parameters after their own.

        @R.function
        def scale(y: R.Tensor((n,), "float32")): ... R.multiply(y, x) ...
        -->
        scale = R.make_closure(cls.main_scale, (x,))

    A local function without captured variables is replaced by the function of the module.  A call
    of a known local function, recursion included, becomes a direct call with the captured
    variables.  Other calls of values become ``R.invoke_closure``, or ``R.invoke_pure_closure`` for
    functions without effects.  A dimension symbol of the outer function that no captured tensor
    binds is captured as a shape.  The new functions are private, named ``<outer>_<local>``, and
    precede their outer function.  Afterwards no function has a local function.
    """
    lifter = _Module(module)
    for name, function in module.functions.items():
        if isinstance(function, Function):
            lifter.lift(name, function, {})
        else:
            lifter.functions[name] = function
    if all(lifter.functions[n] is f for n, f in module.functions.items()):
        return module
    return replace(module, functions=lifter.functions)


@dataclass(frozen=True, slots=True)
class _Lifted:
    """A lifted function, and the arguments that follow its own: the captured variables."""

    function: GlobalVar
    captured: tuple[Expr, ...]

    def closure(self) -> Expr:
        """The function as a value."""
        if not self.captured:
            return self.function
        return call("make_closure", self.function, Tuple(self.captured))


class _Module:
    """The functions of the new module so far."""

    def __init__(self, module: IRModule) -> None:
        self.functions: dict[str, BaseFunc] = {}
        self._names = set(module.functions)

    def name(self, outer: str, local: str) -> str:
        """A unique name for a local function."""
        return unused(f"{outer}_{local}", self._names)

    def lift(self, name: str, function: Function, known: Mapping[Var, _Lifted]) -> None:
        """Add `function`, after its local functions; `known` are local functions in scope."""
        changed = _Lifter(self, name, function, known).visit_expr(function)
        assert isinstance(changed, Function)
        if changed is not function:
            changed = replace(changed, ret_struct_info=function.ret_struct_info)
        self.functions[name] = changed


class _Lifter(ExprMutator):
    """Rewrites one function; `_symbols` are the symbols bound in its scope."""

    def __init__(
        self, module: _Module, name: str, function: Function, known: Mapping[Var, _Lifted]
    ) -> None:
        super().__init__()
        self._module = module
        self._name = name
        self._known = dict(known)
        self._bound: set[Var] = set()
        self._values = _read_as_values(function)
        self._symbols = set[str]().union(*(bare_symbols(p.struct_info) for p in function.params))

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        outside, self._symbols = self._symbols, set(self._symbols)
        visited = super().visit_seq_expr(seq)
        self._symbols = outside
        return visited

    def visit_match_cast(self, binding: MatchCast) -> None:
        super().visit_match_cast(binding)
        self._symbols |= bare_symbols(binding.struct_info)

    def visit_var(self, var: Var) -> Expr:
        """A use of `var` as a value: a local function becomes a closure."""
        if var not in self._known or var in self._bound:
            return super().visit_var(var)
        return self._leaf(self._known[var].closure())

    def visit_call(self, call: Call) -> Expr:
        lifted = self._known.get(call.op) if isinstance(call.op, Var) else None
        if lifted is not None:
            args = (*map(self.visit_expr, call.args), *lifted.captured)
            direct = replace(call, op=lifted.function, args=args)
            return replace(direct, struct_info=stronger(call.struct_info, infer(direct)))
        visited = super().visit_call(call)
        if not isinstance(visited, Call) or not isinstance(visited.op, Var):
            return visited
        info = visited.struct_info
        op = OPS["invoke_pure_closure" if is_pure(visited) else "invoke_closure"]
        sinfo_args = () if isinstance(info, ObjectStructInfo) else (info,)
        return Call(op, (visited.op, Tuple(visited.args)), {}, sinfo_args, info, call.span)

    def visit_var_binding(self, binding: VarBinding) -> None:
        if not isinstance(binding.value, Function):
            super().visit_var_binding(binding)
            return
        var = binding.var
        lifted = self._lifted(var, binding.value)
        if isinstance(var, DataflowVar) or not any(
            isinstance(c, DataflowVar) for c in lifted.captured
        ):
            self._known[var] = lifted  # its captured variables are in scope wherever it is
        if var not in self._known or (lifted.captured and var in self._values):
            self.emit_binding(VarBinding(var, lifted.closure()))
            self._bound.add(var)

    def _lifted(self, var: Var, local: Function) -> _Lifted:
        """Add `local`, which is bound to `var`, to the module."""
        free = [v for v in free_vars(local) if v is not var]
        known = {v: self._known[v] for v in free if v in self._known}
        outer = self._captured(local, [v for v in free if v not in known], known.values())
        names = {v.name for v in variables_of(local)}
        params: dict[Var, Expr] = {}
        for v in outer:
            info = Substitution({}, params).info(self._outside(v).struct_info)
            params[v] = Var(unused(v.name, names), info)
        bound = set[str]().union(*(bare_symbols(p.struct_info) for p in params.values()))
        used = symbols_in(local).union(
            *(symbols_of(p.struct_info) for p in params.values()),
            *(symbols_in(c) for lifted in known.values() for c in lifted.captured),
        )
        captured, behind = tuple(map(self._outside, outer)), tuple(params.values())
        if untold := sorted((used & self._symbols) - bound):
            extents = ShapeExpr(tuple(dims.canonical(dims.symbol(s)) for s in untold))
            captured = (*captured, extents)
            info = ShapeStructInfo(extents.values, len(untold))
            behind = (*behind, Var(unused("dims", names), info))
        function = Substitution({}, params).function(local)
        function = replace(
            function,
            params=tuple(p for p in (*function.params, *behind) if isinstance(p, Var)),
            attrs={**function.attrs, "private": True},
        )
        itself = GlobalVar(self._module.name(self._name, var.name), function.struct_info)
        inside = {v: _Lifted(f.function, _put(f.captured, params)) for v, f in known.items()}
        self._module.lift(itself.name, function, {**inside, var: _Lifted(itself, behind)})
        return _Lifted(itself, captured)

    def _captured(
        self, local: Function, free: Iterable[Var], known: Iterable[_Lifted]
    ) -> dict[Var, None]:
        """The outer variables that `local` needs; variables that are shapes of others first."""
        needed = dict.fromkeys(free)
        needed.update((c, None) for f in known for c in f.captured if isinstance(c, Var))
        shapes = shape_variables_in(local) - set(variables_of(local))
        shapes = shapes.union(*(shape_variables_of(v.struct_info) for v in needed))
        return dict.fromkeys([*sorted(shapes, key=lambda v: v.name), *needed])

    def _outside(self, var: Var) -> Expr:
        """`var` as the enclosing function reads it."""
        return ExprMutator.visit_var(self, var)


def _put(captured: Iterable[Expr], params: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    return tuple(params.get(c, c) if isinstance(c, Var) else c for c in captured)


def _read_as_values(function: Function) -> set[Var]:
    """The variables that `function` uses as values, without uses in local functions."""
    values: set[Var] = set()

    def visit(expr: Expr) -> None:
        match expr:
            case Var():
                values.add(expr)
            case Function():
                return
            case Call(op=Var(), args=args):
                for a in args:
                    visit(a)
                return
            case _:
                pass
        for child in children(expr):
            visit(child)

    visit(function.body)
    return values
