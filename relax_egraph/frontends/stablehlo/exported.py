"""Functions of jax: exported with ``jax.export``, then imported as StableHLO."""

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export

from relax_egraph.frontends.stablehlo.importer import import_module
from relax_egraph.frontends.stablehlo.reading import read
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.module import IRModule


def import_function(function: Any, arguments: Sequence[Any]) -> IRModule:
    """See `relax_egraph.from_jax`."""
    if isinstance(function, export.Exported):
        exported = function
        names = [f"arg{k}" for k in range(len(exported.in_avals))]
    else:
        exported = export.export(jax.jit(function, keep_unused=True))(*arguments)
        names = _names(function, arguments)
    kept = exported.module_kept_var_idx
    shapes = [tuple(map(_dim, exported.in_avals[k].shape)) for k in kept]
    module = read(exported.mlir_module_serialized)
    return import_module(module, [names[k] for k in kept], shapes)


def _names(function: Callable[..., Any], arguments: Sequence[Any]) -> list[str]:
    """The names of all arrays: those of parameters, with the path into a tree."""
    try:
        parameters = list(inspect.signature(function).bind(*arguments).signature.parameters)
    except (TypeError, ValueError):
        parameters = []
    leaves, _ = jax.tree_util.tree_flatten_with_path(tuple(arguments))
    names: list[str] = []
    for path, _ in leaves:
        place = path[0].idx
        first = parameters[place] if place < len(parameters) else f"arg{place}"
        names.append(first + jax.tree_util.keystr(path[1:]))
    return names


def _dim(size: Any) -> Dim:
    """A size of jax as a dimension: its text is one of Python, with functions of its own."""
    return size if isinstance(size, int) else _of(ast.parse(str(size), mode="eval").body)


_FUNCTIONS = {
    "floordiv": dims.floordiv,
    "mod": dims.mod,
    "max": dims.maximum,
    "min": dims.minimum,
    "non_negative": lambda a: dims.maximum(a, 0),
}


def _of(tree: ast.expr) -> Dim:
    match tree:
        case ast.Name(id=name):
            return dims.symbol(name)
        case ast.Constant(value=int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return dims.mul(-1, _of(operand))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return dims.add(_of(left), _of(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return dims.sub(_of(left), _of(right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return dims.mul(_of(left), _of(right))
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as exponent)):
            return dims.product([_of(left)] * exponent)
        case ast.Call(func=ast.Name(id=name), args=operands) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*map(_of, operands))
        case _:
            raise ValueError(f"{ast.unparse(tree)} is no size")
