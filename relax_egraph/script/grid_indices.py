"""One name for all indices of a grid: ``for i in T.grid(n, m):``."""

import ast
import copy
from collections.abc import Sequence


def several_indices(
    name: ast.Name, count: int, body: Sequence[ast.stmt]
) -> tuple[list[ast.expr], list[ast.stmt]]:
    """A name for each index, and a copy of `body` with the tuple of them for `name`."""
    taken = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
    stem = name.id
    while any(f"{stem}_{k}" in taken for k in range(count)):
        stem += "_"
    indices = [ast.copy_location(ast.Name(f"{stem}_{k}", ast.Store()), name) for k in range(count)]
    written = _Indices(name.id, tuple(i.id for i in indices))
    return [*indices], [written.visit(copy.deepcopy(s)) for s in body]


class _Indices(ast.NodeTransformer):
    """Writes a tuple for a name, and its fields for subscripts of the name."""

    def __init__(self, name: str, indices: tuple[str, ...]) -> None:
        self._name = name
        self._indices = indices

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name that ast calls
        if node.id != self._name:
            return node
        fields = [ast.copy_location(ast.Name(i, ast.Load()), node) for i in self._indices]
        return ast.copy_location(ast.Tuple([*fields], ast.Load()), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:  # the name that ast calls
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(number))):
                if name == self._name and 0 <= number < len(self._indices):
                    return ast.copy_location(ast.Name(self._indices[number], ast.Load()), node)
            case _:
                pass
        return self.generic_visit(node)
