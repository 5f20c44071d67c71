"""Values of Python in a function of the graph level: ``scale = I.meta_var(T.float32(0.1))``."""

import ast
import copy

from relax_egraph.script.source import dotted

_META = frozenset({"I.meta_var", "R.meta_var", "T.meta_var"})


def with_values(function: ast.FunctionDef) -> ast.FunctionDef:
    """`function` with such values in place of their names; itself if it has none.

    A value is a literal, and its name has no other meaning in the function.
    """
    values: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            values.update(_named(node))
    stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and _is_stored(n)]
    stored += [n.arg for n in ast.walk(function) if isinstance(n, ast.arg)]
    once = {name: value for name, value in values.items() if stored.count(name) == 1}
    return _Values(once).visit(copy.deepcopy(function)) if once else function


def _named(node: ast.Assign) -> dict[str, ast.expr]:
    """The names that an assignment gives to values, also to some of a tuple."""
    return {
        target.id: value.args[0]
        for target, value in _pairs(node)
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and _is_meta(value)
    }


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with their values."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            return list(zip(names, values, strict=False)) if len(names) == len(values) else []
        case ast.Assign(targets=[target], value=value):
            return [(target, value)]
        case _:
            return []


def _is_meta(node: ast.Call) -> bool:
    if dotted(node.func) not in _META or len(node.args) != 1 or node.keywords:
        return False
    names = {n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
    return names <= {"T", "R", "I", "tirx", "tir", "relax", "tvm", "float"}


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


class _Values(ast.NodeTransformer):
    """Writes values for names, and drops the assignments of the names."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name that ast calls
        if node.id not in self._values or _is_stored(node):
            return node
        value = copy.deepcopy(self._values[node.id])
        for part in ast.walk(value):
            ast.copy_location(part, node)
        return value

    def visit_Assign(self, node: ast.Assign) -> ast.AST:  # the name that ast calls
        dropped = _named(node).keys() & self._values.keys()
        rest = [
            (target, value)
            for target, value in _pairs(node)
            if not (isinstance(target, ast.Name) and target.id in dropped)
        ]
        if not dropped:
            return self.generic_visit(node)
        if not rest:
            return ast.copy_location(ast.Pass(), node)
        targets = ast.Tuple([target for target, _ in rest], ast.Store())
        values = ast.Tuple([value for _, value in rest], ast.Load())
        kept = ast.Assign([ast.copy_location(targets, node)], ast.copy_location(values, node))
        return self.generic_visit(ast.copy_location(kept, node))
