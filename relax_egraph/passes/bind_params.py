"""Replaces parameters of a function by constants."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import IllFormed, IllTyped
from relax_egraph.ir.agreement import bind, relation, substituted
from relax_egraph.ir.expr import Constant, Expr, Function, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo, symbols_of
from relax_egraph.ir.substitution import Substitution
from relax_egraph.passes.dead_code import callees
from relax_egraph.passes.infra import Pass
from relax_egraph.passes.symbol_binding import solve

Bound: TypeAlias = "npt.NDArray[Any] | Constant | Sequence[Bound]"
"""An array, or a sequence of them for a parameter that is a tuple."""


def bind_params(func_name: str, params: "Mapping[str, Bound] | Mapping[str | Var, Bound]") -> Pass:
    """Replace each parameter that `params` names by an array; other parameters stay.

    Dimension symbols become the extents of the arrays that bind them.  Raises `IllFormed` if the
    function does not exist, is called within the module, or has no such parameter, and `IllTyped`
    for an array that does not match the declaration of the parameter.
    """

    def run(module: IRModule) -> IRModule:
        function = relax_function("bind_params", module, func_name)
        for name, other in module.relax_functions():
            if func_name in callees(other):
                raise IllFormed(
                    f"bind_params: {name} calls {func_name}, which would take fewer arguments"
                )
        bound = _with_bound(func_name, function, params)
        return replace(module, functions={**module.functions, func_name: bound})

    return Pass("bind_params", 0, run)


def relax_function(what: str, module: IRModule, name: str) -> Function:
    """The relax function `name` of `module`; raises `IllFormed`, which names the pass `what`."""
    functions = dict(module.relax_functions())
    if name not in functions:
        known = ", ".join(sorted(functions)) or "none"
        raise IllFormed(f"{what}: no function {name!r}; there are: {known}")
    return functions[name]


def _with_bound(
    name: str, function: Function, bound: "Mapping[str, Bound] | Mapping[str | Var, Bound]"
) -> Function:
    chosen: dict[Var, Expr] = {}
    for key, value in bound.items():
        param = _param(name, function, key)
        if param in chosen:
            raise IllFormed(f"bind_params: parameter {param.name} of {name} is given twice")
        chosen[param] = _constant(value)
    formals, actuals = [p.struct_info for p in chosen], [c.struct_info for c in chosen.values()]
    values = bind(formals, actuals)
    for formal, actual in zip(map(_extents, formals), map(_extents, actuals), strict=True):
        for f, x in zip(formal, actual, strict=False):
            solve(f, x, values)
    for (param, constant), info in zip(chosen.items(), actuals, strict=True):
        partly = {s: values[s] for s in symbols_of(param.struct_info) & values.keys()}
        complete = len(partly) == len(symbols_of(param.struct_info))
        claim = substituted(param.struct_info, partly) if complete else param.struct_info
        if relation(claim, info) == "contradiction":
            extents = ", ".join(f"{s} = {partly[s]}" for s in sorted(partly))
            under = f" with {extents}" if extents else ""
            raise IllTyped(
                f"bind_params: parameter {param.name} of {name} is {param.struct_info}{under}, "
                f"got {constant.struct_info}"
            )
    params = tuple(p for p in function.params if p not in chosen)
    for param in chosen:
        if untold := sorted(symbols_of(param.struct_info) - values.keys()):
            raise IllFormed(
                f"bind_params: parameter {param.name} of {name} is {param.struct_info}: "
                f"an array does not determine {', '.join(untold)}"
            )
    return Substitution(values, chosen).function(replace(function, params=params))


def _extents(info: StructInfo) -> Shape:
    return (info.dims or ()) if isinstance(info, TensorStructInfo) else ()


def _param(name: str, function: Function, key: "str | Var") -> Var:
    matches = [p for p in function.params if key in (p, p.name)]
    if len(matches) != 1:
        written = key if isinstance(key, str) else key.name
        has = ", ".join(p.name for p in function.params) or "none"
        what = "no parameter" if not matches else f"{len(matches)} parameters"
        raise IllFormed(f"bind_params: {name} has {what} {written!r}; it has: {has}")
    return matches[0]


def _constant(value: Bound) -> Expr:
    if isinstance(value, Constant):
        return value
    if isinstance(value, tuple | list):
        return Tuple(tuple(map(_constant, value)))
    return Constant(np.asarray(value))
