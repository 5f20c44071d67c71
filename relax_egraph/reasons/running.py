"""Runs of a program: by the numpy reference, compiled, and in float64."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from relax_egraph.base.parameters import Kind, is_collection
from relax_egraph.build import build
from relax_egraph.errors import RelaxEgraphError, UnknownFunction, nearest
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.matching import as_value, check
from relax_egraph.ir.module import IRModule
from relax_egraph.reasons.widened import wide_value, widened
from relax_egraph.vm.machine import VirtualMachine
from relax_egraph.vm.registry import registered, registered_names

Inputs: TypeAlias = Mapping[str, Any] | Sequence[Any]
"""The arguments of a function, by the names of its parameters or in their order."""

INPUTS = Kind(
    "arrays by the names of parameters, or a sequence of them in order",
    lambda value: isinstance(value, Mapping) or is_collection(value),
)


def arguments(module: IRModule, function: str, inputs: Inputs) -> list[Any]:
    """The arguments of `function` in order, checked against its parameters.

    Raises `UnknownFunction`, ``ValueError`` for a name that no parameter has or a parameter that
    `inputs` lack, and `RunError` for a value that does not fit the declaration of its parameter.
    """
    called = module.functions.get(function)
    if not isinstance(called, Function):
        names = (name for name, _ in module.relax_functions())
        raise UnknownFunction.among(function, "in the module", names)
    names = [p.name for p in called.params]
    if isinstance(inputs, Mapping):
        for name in inputs:
            if name not in names:
                has = ", ".join(names) or "none"
                message = f"{function} has no parameter {name}; it has {has}", nearest(name, names)
                raise ValueError("; ".join(filter(None, message)))
        if lacking := [name for name in names if name not in inputs]:
            raise ValueError(f"inputs lack {', '.join(lacking)} of {function}")
        values = [inputs[name] for name in names]
    elif len(inputs) != len(names):
        noun = "argument" if len(names) == 1 else "arguments"
        raise ValueError(f"{function} takes {len(names)} {noun}, got {len(inputs)}")
    else:
        values = list(inputs)
    values = list(map(as_value, values))
    claims = zip(called.params, values, strict=True)
    check([(f"{function}: parameter {p.name}", p.struct_info, v) for p, v in claims], {})
    return values


def interpreted(module: IRModule, function: str, args: Sequence[Any]) -> list[Any]:
    """The outputs of `function`, by the numpy reference; raises `RunError`."""
    known = ((name, registered(name)) for name in registered_names())
    packed = {name: run for name, run in known if run is not None}
    return _parts(evaluate(module, function, *_copied(args), packed=packed))


def built(module: IRModule, function: str, args: Sequence[Any]) -> list[Any]:
    """The outputs of `function`, compiled for this machine."""
    return _parts(VirtualMachine(build(module))[function](*_copied(args)))


def meant(module: IRModule, function: str, args: Sequence[Any]) -> list[Any] | None:
    """The outputs of `function` in float64; ``None`` if an operator does not take it."""
    try:
        return interpreted(widened(module), function, wide_value(tuple(args)))
    except RelaxEgraphError:
        return None


def _copied(args: Sequence[Any]) -> list[Any]:
    """Copies of the arguments: a program may write into them."""
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def _parts(result: Any) -> list[Any]:
    """The tensors and other values in a result, in order; a shape is one value."""
    if isinstance(result, tuple):
        parts = cast(tuple[Any, ...], result)
        if not parts or not all(isinstance(part, int) for part in parts):
            return [within for part in parts for within in _parts(part)]
    return [result]
