"""Replaces dimension symbols of functions by numbers, or by other dimensions."""

from collections.abc import Mapping
from dataclasses import replace

from relax_egraph.errors import IllFormed
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.occurrences import symbols_in
from relax_egraph.ir.struct_info import symbols_of
from relax_egraph.ir.substitution import Substitution
from relax_egraph.passes.bind_params import relax_function
from relax_egraph.passes.infra import Pass


def bind_symbolic_vars(values: Mapping[str, Dim], func_name: str | None = None) -> Pass:
    """Replace symbols by `values`, in the function `func_name` or in every function that has them.

    Symbols are replaced in the signature, in struct info, shapes, ``tir_vars`` and casts, which
    become checks.  The struct info of results is inferred again.  Loop functions stay generic in
    their extents.  Raises `IllFormed` if the function does not exist, if no function has one of
    the symbols, or if a parameter is left with a symbol that no parameter binds.
    """
    canonical = {name: dims.canonical(value) for name, value in values.items()}

    def run(module: IRModule) -> IRModule:
        chosen = dict(module.relax_functions())
        if func_name is not None:
            chosen = {func_name: relax_function("bind_symbolic_vars", module, func_name)}
        known = frozenset[str]().union(*map(symbols_in, chosen.values()))
        if missing := sorted(canonical.keys() - known):
            where = func_name or "the module"
            raise IllFormed(
                f"bind_symbolic_vars: {where} has no symbol {missing[0]!r}; "
                f"it has: {', '.join(sorted(known)) or 'none'}"
            )
        functions: dict[str, BaseFunc] = dict(module.functions)
        for name, function in chosen.items():
            functions[name] = _specialised(name, function, canonical)
        return replace(module, functions=functions)

    return Pass("bind_symbolic_vars", 0, run)


def _specialised(name: str, function: Function, values: Mapping[str, Dim]) -> Function:
    changed = Substitution(values).function(function)
    infos = [p.struct_info for p in changed.params]
    bound = set[str]().union(*map(bare_symbols, infos))
    if untold := sorted(frozenset[str]().union(*map(symbols_of, infos)) - bound):
        raise IllFormed(
            f"bind_symbolic_vars: nothing binds {', '.join(untold)} of {name}: "
            "no parameter has it alone as a dimension"
        )
    return changed
