"""The heads of functions of both levels: decorator, parameters, declared symbols."""

import ast
from collections.abc import Sequence

from relax_egraph.ir.syntax import parsed_expression
from relax_egraph.script.literals import read_literal
from relax_egraph.script.scope import Globals
from relax_egraph.script.source import Source, arguments, dotted

_DECLARATIONS = frozenset({"T.int64", "T.int32", "T.var", "R.shape_vars"})


def is_older(node: ast.FunctionDef) -> bool:
    """Whether a function is of the oldest form: ``@R.func``, ``x: R.Tensor[(n,), "f32"]``."""
    annotations = [node.returns, *(a.annotation for a in (*node.args.posonlyargs, *node.args.args))]
    return any(isinstance(a, ast.Subscript) for a in annotations) or any(
        isinstance(d, ast.Attribute) and d.attr == "func" for d in node.decorator_list
    )


def declares_symbol(node: ast.expr) -> bool:
    """Whether `node` declares a symbol: ``T.int64()``, ``T.var("n")``, not ``T.int64(3)``."""
    if not isinstance(node, ast.Call) or (name := dotted(node.func)) not in _DECLARATIONS:
        return False
    return not node.args or (len(node.args) == 1 and name in ("T.var", "R.shape_vars"))


def declared_symbols(node: ast.stmt) -> list[str]:
    """The symbols that a statement declares: ``n = T.int64()``, ``n, m = T.int64(), T.int64()``."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if declares_symbol(value):
            return [name]
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            if len(names) == len(values) and all(map(declares_symbol, values)):
                return [name.id for name in names if isinstance(name, ast.Name)]
        case ast.Assign(targets=[target], value=ast.Call(func=func, args=values)):
            if dotted(func) == "R.shape_vars":
                names = target.elts if isinstance(target, ast.Tuple) else []
                if len(names) == len(values):
                    return [name.id for name in names if isinstance(name, ast.Name)]
        case _:
            pass
    return []


def leading_symbols(body: Sequence[ast.stmt]) -> set[str]:
    """The symbols that the first statements declare: a signature may use them."""
    symbols: set[str] = set()
    for statement in body:
        declared = declared_symbols(statement)
        if not declared and not isinstance(statement, ast.Expr):
            break
        symbols.update(declared)
    return symbols


def read_options(node: ast.FunctionDef, module: Globals, names: tuple[str, ...]) -> dict[str, bool]:
    """The options of a function's decorator: ``@R.function(private=True, pure=False)``."""
    decorator = node.decorator_list[0]
    if not isinstance(decorator, ast.Call):
        return {}
    by_name = arguments(module.source, decorator, (*names, "check_well_formed"))
    return {name: bool(read_literal(module.source, value)) for name, value in by_name.items()}


def unquoted(annotation: ast.expr | None, source: Source) -> ast.expr | None:
    """An annotation that is written as a string, which Python does not evaluate."""
    match annotation:
        case ast.Constant(value=str(text)):
            pass
        case _:
            return annotation
    try:
        inner = parsed_expression(text.strip())
    except (SyntaxError, ValueError):
        raise source.error(annotation, f'"{text}" is no annotation') from None
    for part in ast.walk(inner):
        ast.copy_location(part, annotation)
    return inner


def parameters(node: ast.FunctionDef, module: Globals) -> list[ast.arg]:
    """The parameters, which are plain: no defaults, no ``*args``, each name once."""
    args = node.args
    odd = [*args.defaults, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    if odd:
        raise module.source.error(
            odd[0], f"unsupported parameter of {node.name}: needs `name: annotation`"
        )
    plain = [*args.posonlyargs, *args.args]
    for param in plain:
        param.annotation = unquoted(param.annotation, module.source)
    for number, param in enumerate(plain):
        if any(param.arg == before.arg for before in plain[:number]):
            raise module.source.error(param, f"two parameters are named {param.arg}")
    return plain
