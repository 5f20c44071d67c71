"""Refines shapes and dtypes of parameters and variables by their later uses.

    lv0 = R.log(x)            # x: R.Tensor
    lv1 = R.ewise_add(lv0, y) # y: R.Tensor((m, n), "float32")

makes `x` a parameter of ``R.Tensor((m, n), "float32")``, and with it `lv0`.
"""

from collections.abc import Iterator
from dataclasses import replace

from relax_egraph.ir.agreement import bare_symbols, implies, relation
from relax_egraph.ir.backward import joined, learned
from relax_egraph.ir.call_rules import is_pure_in
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import infer
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    symbols_of,
)
from relax_egraph.ir.walk import bindings_of
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.infra import module_pass

ROUNDS = 16
"""The rounds of propagation through all bindings and calls, backwards and forwards."""


@module_pass(name="refine_shapes")
def refine_shapes(module: IRModule) -> IRModule:
    """Give parameters and variables the shapes and dtypes that their uses require.

    Only uses that every call of the function reaches, before any side effect, refine earlier
    values: a call that would fail later then fails on entry.  A parameter is refined if
    parameters bind all symbols.  A value whose inferred struct info is weaker is followed by an
    ``R.match_cast``.  Callers use the refined signature.  A module whose uses contradict each other
    stays as it is.
    """
    return _settled(module, _Casting)


@module_pass(name="refine_parameters")
def refine_parameters(module: IRModule) -> IRModule:
    """Give parameters the shapes and dtypes that their uses require, as `refine_shapes` does.

    Variables get what is inferred from these.  No cast is added: a value that fails a later use
    still fails there, in the same words.
    """
    return _settled(module, _Refiner)


def _settled(module: IRModule, refiner: "type[_Refiner]") -> IRModule:
    if not any(_lacks_info(function) for _, function in module.relax_functions()):
        return module
    refined = module
    for _ in range(ROUNDS):
        functions = dict(refined.functions)
        for name, function in refined.relax_functions():
            functions[name] = _refined(function, refined, refiner)
        if all(functions[name] is f for name, f in refined.functions.items()):
            break
        refined = replace(refined, functions=functions)
    return module if refined is module or find_ill_formed(refined) else refined


def _lacks_info(function: Function) -> bool:
    """Whether a shape or a dtype of `function` is unknown, so that uses may tell it."""
    variables = (*function.params, *(b.var for b in bindings_of(function.body)))
    return any(_is_open(v.struct_info) for v in variables)


def _is_open(info: StructInfo) -> bool:
    match info:
        case TensorStructInfo(shape=shape, dtype=dtype):
            return shape is None or dtype is None
        case ShapeStructInfo(values=values):
            return values is None
        case _:
            return False


def _refined(function: Function, module: IRModule, refiner: "type[_Refiner]") -> Function:
    current = _Signatures(module).visit_expr(function)
    assert isinstance(current, Function)
    known = _Known(current, module)
    known.settle()
    refined = refiner(known).visit_expr(current)
    assert isinstance(refined, Function)
    return refined


class _Signatures(ExprMutator):
    """Infers the results of calls from the current signatures of the module."""

    def __init__(self, module: IRModule) -> None:
        super().__init__()
        self._module = module

    def visit_global_var(self, function: GlobalVar) -> GlobalVar:
        if function.name not in self._module:
            return function
        info = self._module[function.name].struct_info
        return function if info == function.struct_info else GlobalVar(function.name, info)


class _Known:
    """The struct info of each variable of the bindings that every call runs."""

    def __init__(self, function: Function, module: IRModule) -> None:
        self.params = function.params
        self.bindings = tuple(_always_run(function, module))
        self.infos: dict[Var, StructInfo] = {p: p.struct_info for p in function.params}
        self.infos |= {b.var: b.var.struct_info for b in self.bindings}
        self.symbols = frozenset[str]().union(
            *(bare_symbols(p.struct_info) for p in function.params)
        )

    def settle(self) -> None:
        """Propagate to the fixpoint; struct info only gets stronger, so it ends."""
        for _ in range(ROUNDS):
            before = dict(self.infos)
            for binding in reversed(self.bindings):
                self._backward(binding)
            for binding in self.bindings:
                self._forward(binding)
            if self.infos == before:
                return

    def inferred(self, binding: Binding) -> StructInfo:
        """The struct info that is inferred for the bound value."""
        value = self._read(binding.value)
        if isinstance(binding, MatchCast):
            return binding.struct_info
        return infer(value) if isinstance(value, Call) else value.struct_info

    def _forward(self, binding: Binding) -> None:
        self._learn(binding.var, self.inferred(binding))

    def _backward(self, binding: Binding) -> None:
        result = self.infos[binding.var]
        match binding.value:
            case Call() as call:
                read = self._read(call)
                assert isinstance(read, Call)
                for arg, info in zip(call.args, learned(read, result), strict=True):
                    if isinstance(arg, Var) and arg in self.infos:
                        self._learn(arg, info)
            case Var() as source if source in self.params:
                self._learn(source, result)
            case _:
                pass

    def _learn(self, var: Var, info: StructInfo) -> None:
        """Strengthen the struct info of `var` by `info`, in symbols that parameters bind."""
        new = joined(self.infos[var], info)
        if new != self.infos[var] and symbols_of(new) <= self.symbols | symbols_of(var.struct_info):
            self.infos[var] = new

    def _read(self, value: Expr) -> Expr:
        """`value`, with variables of the current struct info."""
        if isinstance(value, Call):
            return replace(value, args=tuple(map(self._read, value.args)))
        if isinstance(value, Var) and value in self.infos:
            return replace(value, struct_info=self.infos[value])
        return value


def _always_run(function: Function, module: IRModule) -> Iterator[Binding]:
    """The bindings of the body up to the first with side effects or branches."""
    for binding in bindings_of(function.body):
        value = binding.value
        if isinstance(value, If) or (isinstance(value, Call) and not is_pure_in(module, value)):
            return
        yield binding


class _Refiner(ExprMutator):
    """Gives parameters what is known, and variables what their values prove of it."""

    def __init__(self, known: _Known) -> None:
        super().__init__()
        self._known = known

    def visit_var_def(self, var: Var) -> Var:
        info = self._known.infos.get(var, var.struct_info)
        return var if info == var.struct_info else replace(var, struct_info=info)

    def visit_var_binding(self, binding: VarBinding) -> None:
        refined = self._known.infos.get(binding.var, binding.var.struct_info)
        value = self.normalize(self.visit_expr(binding.value))
        if refined != binding.var.struct_info and implies(value.struct_info, refined):
            strong = replace(binding.var, struct_info=refined)
            self.replace_var(binding.var, strong)
            self.emit_binding(VarBinding(strong, value))
        else:
            self.rebind(binding, value)


class _Casting(_Refiner):
    """Adds casts where a value proves less than what is known."""

    def visit_var_binding(self, binding: VarBinding) -> None:
        super().visit_var_binding(binding)
        refined = self._known.infos.get(binding.var, binding.var.struct_info)
        have = self.visit_expr(binding.var)
        if relation(refined, have.struct_info) == "unproven" and refined != binding.var.struct_info:
            assert isinstance(have, Var)
            name = self._fresh(have.name)
            cast = replace(have, name=name, struct_info=refined)
            self.emit_binding(MatchCast(cast, have, refined))
            self.replace_var(binding.var, cast)
