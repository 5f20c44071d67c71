"""Dimension symbols become numbers, or other dimensions."""

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
    """Put `values` for the symbols of the function `func_name`, or of each that has them.

    They are replaced everywhere: in the signature, in struct info, shapes, ``tir_vars`` and
    casts, which become checks.  What is known of results is inferred anew.  Loop functions that
    are called stay as they are, for any extent.  Raises `IllFormed` if the function is not there,
    if no function has a symbol, or if afterwards a dimension of a parameter has a symbol that
    no parameter tells.
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
    told = set[str]().union(*map(bare_symbols, infos))
    if untold := sorted(frozenset[str]().union(*map(symbols_of, infos)) - told):
        raise IllFormed(
            f"bind_symbolic_vars: nothing says what {', '.join(untold)} of {name} is: "
            "no parameter has it alone as a dimension"
        )
    return changed
