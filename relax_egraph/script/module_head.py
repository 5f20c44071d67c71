"""Reads what a script says of the whole module: symbols, attributes, global infos."""

import ast

from relax_egraph.script.literals import read_attrs, read_string
from relax_egraph.script.scope import Globals
from relax_egraph.script.signatures import declared_symbols
from relax_egraph.script.source import dotted


def read_statement(module: Globals, node: ast.stmt) -> None:
    """A statement beside the functions: it adds to `module`, or is a docstring."""
    if symbols := declared_symbols(node):
        module.symbols.update(symbols)
        return
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Expr(value=ast.Call(func=func, args=[written], keywords=[])):
            if dotted(func) == "I.module_attrs":
                module.attrs.update(read_attrs(module.source, written, "module_attrs"))
                return
            if dotted(func) == "I.module_global_infos":
                module.global_infos.update(_global_infos(module, written))
                return
        case _:
            pass
    written = ast.unparse(node).splitlines()[0]
    raise module.source.error(node, f"unsupported statement `{written}` in a module")


def _global_infos(module: Globals, node: ast.expr) -> dict[str, tuple[str, ...]]:
    """The infos by name, each as its text."""
    if not isinstance(node, ast.Dict):
        message = f"module_global_infos takes a dictionary, got `{ast.unparse(node)}`"
        raise module.source.error(node, message)
    infos: dict[str, tuple[str, ...]] = {}
    for key, listed in zip(node.keys, node.values, strict=True):
        if key is None or not isinstance(listed, ast.List | ast.Tuple):
            raise module.source.error(listed, f"`{ast.unparse(listed)}` is no list of global infos")
        name = read_string(module.source, key, "the name of global infos")
        infos[name] = tuple(ast.unparse(info) for info in listed.elts)
    return infos
