"""Annotations with square brackets, the oldest form: ``R.Tensor[(n, k), "f32"]``.

Each is rewritten as today's call, ``R.Tensor((n, k), "f32")``.
"""

import ast
from collections.abc import Callable

from relax_egraph.script.source import dotted
from relax_egraph.script.spellings import DTYPE_NAMES


def as_call(node: ast.Subscript, is_shape: Callable[[ast.expr], bool]) -> ast.Call:
    """The call in today's form; `is_shape` decides whether a name is a variable with a shape.

    ``_`` stands for an unknown part.  Python does not distinguish ``R.Tensor[(n, m)]`` from
    ``R.Tensor[n, m]``: the second is a dtype if the first is a whole shape.
    """
    inner = node.slice
    args: list[ast.expr] = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    name = dotted(node.value)
    if name.endswith(("Tensor", "Buffer")):
        args = _tensor(node, args, is_shape)
    elif name.endswith("Shape"):
        args = [_tuple(node, args)] if isinstance(inner, ast.Tuple) else args
    return ast.copy_location(ast.Call(node.value, [*args], []), node)


def is_unknown(node: ast.expr) -> bool:
    """Whether `node` is ``_``, ``"_"`` or ``None``: not known."""
    match node:
        case ast.Name(id="_") | ast.Constant(value=None | "_"):
            return True
        case _:
            return False


def _tensor(
    node: ast.Subscript, args: list[ast.expr], is_shape: Callable[[ast.expr], bool]
) -> list[ast.expr]:
    """The shape, and the dtype if there is one."""
    if len(args) == 2 and (_is_whole(args[0], is_shape) or _is_dtype(args[1])):
        return args
    if len(args) == 1 and (_is_whole(args[0], is_shape) or _is_dtype(args[0])):
        return args
    return [_tuple(node, args)]


def _is_whole(node: ast.expr, is_shape: Callable[[ast.expr], bool]) -> bool:
    """Whether `node` is a shape, not an extent."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.strip().startswith("(") or is_unknown(node)
    return isinstance(node, ast.Tuple | ast.List) or is_unknown(node) or is_shape(node)


def _is_dtype(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(name)):
            return name in DTYPE_NAMES or name in DTYPE_NAMES.values() or name == "bool"
        case _:
            return False


def _tuple(node: ast.expr, elements: list[ast.expr]) -> ast.Tuple:
    return ast.copy_location(ast.Tuple(elements, ast.Load()), node)
