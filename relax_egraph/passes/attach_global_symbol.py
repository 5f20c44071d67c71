"""Public functions get the attribute ``global_symbol``, the name by which they are called."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import Expr, Function, GlobalVar
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir.stmt import PrimFunc

ATTRIBUTE = "global_symbol"


@module_pass(name="attach_global_symbol")
def attach_global_symbol(module: IRModule) -> IRModule:
    """Give each function that is not private the attribute ``global_symbol``.

    Its value is the function's name, which the executable and its listing use.  A relax function
    with another symbol is renamed to it in the whole module; a loop function keeps its name, under
    which it was compiled.  Raises `IllFormed` if two functions would have one name.
    """
    names = {name: _name_of(name, function) for name, function in module.functions.items()}
    for name, count in Counter(names.values()).items():
        if count > 1:
            sharing = " and ".join(old for old, new in names.items() if new == name)
            raise IllFormed(f"the functions {sharing} have one global_symbol: {name}")
    renamed = {old: new for old, new in names.items() if old != new}
    functions: dict[str, BaseFunc] = {}
    for name, function in module.functions.items():
        new = _called(function, renamed) if renamed else function
        if isinstance(new, Function | PrimFunc) and not function.attrs.get("private"):
            new = replace(new, attrs={**function.attrs, ATTRIBUTE: names[name]})
        functions[names[name]] = new
    return replace(module, functions=functions)


def _name_of(name: str, function: BaseFunc) -> str:
    """The new name of the function `name`."""
    symbol = function.attrs.get(ATTRIBUTE)
    public = isinstance(function, Function) and not function.attrs.get("private")
    return symbol if public and isinstance(symbol, str) else name


def _called(function: BaseFunc, renamed: Mapping[str, str]) -> BaseFunc:
    """`function`, with calls of the renamed functions."""
    if not isinstance(function, Function):
        return function
    changed = _Renaming(renamed).visit_expr(function)
    assert isinstance(changed, Function)
    return changed


class _Renaming(ExprMutator):
    def __init__(self, renamed: Mapping[str, str]) -> None:
        super().__init__()
        self._renamed = renamed

    def visit_global_var(self, function: GlobalVar) -> Expr:
        name = self._renamed.get(function.name, function.name)
        return function if name == function.name else replace(function, name=name)
