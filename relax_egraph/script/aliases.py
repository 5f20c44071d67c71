"""Import aliases of R, T and I: ``from tvm.script import tir as tt``."""

import ast
from collections.abc import Iterator

from relax_egraph.script.spellings import MODULES


def use_own_names(tree: ast.Module) -> None:
    """Rewrite `tree` to use ``R``, ``T`` and ``I`` instead of the aliases that it imports."""
    renamed = {alias: name for alias, name in _imported(tree) if alias != name}
    if renamed:
        _Renaming(renamed).visit(tree)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for statement in tree.body:
        match statement:
            case ast.Import(names=names):
                imports = [(n.name, n.asname) for n in names]
            case ast.ImportFrom(module=module, names=names):
                imports = [(f"{module}.{n.name}", n.asname or n.name) for n in names]
            case _:
                continue
        for module, alias in imports:
            if alias is not None and module in MODULES:
                yield alias, MODULES[module]


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:  # the name that ast calls
        node.id = self._names.get(node.id, node.id)
        return node
