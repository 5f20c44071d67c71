"""Reads named scalars of loop functions: ``v = A[i]``, ``with T.let(v, A[i]):``.

The loop language has no such node.  A scalar that reads no buffer is substituted for its uses; any
other is stored in a local buffer of one element, because the buffer that it reads may be written
before its use.
"""

import ast
from dataclasses import dataclass

from relax_egraph.script.source import arguments, dotted
from relax_egraph.script.tir_scope import TirScope
from relax_egraph.tir.expr import Buffer, BufferLoad, DimSymbol, Imm, TirExpr
from relax_egraph.tir.rewrite import operands
from relax_egraph.tir.stmt import Stmt, Store

_AT = (Imm(0, "int64"),)


@dataclass(frozen=True, slots=True)
class Let:
    """A named scalar; `body` is its scope, ``None`` for all that follows."""

    name: ast.Name
    value: ast.expr
    annotation: ast.expr | None = None
    body: list[ast.stmt] | None = None


def as_let(scope: TirScope, node: ast.stmt) -> Let | None:
    """The named scalar of `node`, if it is such a statement."""
    match node:
        case ast.Assign(targets=[ast.Name() as name], value=value):
            if isinstance(value, ast.Call) and dotted(value.func) == "T.meta_var":
                value = arguments(scope.source, value, ("value",)).get("value", value)
            return Let(name, value)
        case ast.AnnAssign(
            target=ast.Name() as name, annotation=annotation, value=ast.expr() as value
        ):
            return Let(name, value, annotation)
        case ast.With(items=[ast.withitem(ast.Call() as call, target)], body=body):
            if dotted(call.func) == "T.let":
                return _block(scope, call, target, body)
        case _:
            pass
    return None


def read_let(scope: TirScope, let: Let) -> tuple[Buffer, Stmt] | None:
    """Define the name; returns the buffer of the value and its store, if they are needed."""
    names, name = scope.expressions.names, let.name.id
    if not isinstance(names.get(name, DimSymbol(name)), DimSymbol):
        note = f'{name} = T.alloc_buffer((1,), "float32", scope="local") may be written again'
        raise scope.error(let.name, f"{name} has a meaning already, it cannot get another", note)
    dtype = "float32" if _is_float(let.value) else "int64"
    declared = _declared(let.annotation) if let.annotation else dtype
    value = scope.expressions.typed(let.value, declared)
    if let.annotation and value.dtype != declared:
        message = f"{name} is declared {ast.unparse(let.annotation)}, but it is {value.dtype}"
        raise scope.error(let.annotation, message)
    if not _reads(value):
        names[name] = value
        return None
    buffer = Buffer(name, (1,), value.dtype, "local")
    names[name] = BufferLoad(buffer, _AT)
    return buffer, Store(buffer, _AT, value)


def _block(scope: TirScope, call: ast.Call, target: ast.expr | None, body: list[ast.stmt]) -> Let:
    """``with T.let(v, value):``, ``with T.LetStmt(value, var=v):``, ``… (value) as v:``."""
    named = [k.value for k in call.keywords if k.arg == "var"]
    parts = [*named, *([target] if target else []), *call.args]
    match parts:
        case [ast.Name() as name, value]:
            return Let(name, value, None, body)
        case _:
            message = f"`{ast.unparse(call)}` is no scalar with a name"
            raise scope.error(call, message, "write v = value, or with T.let(v, value):")


def _declared(annotation: ast.expr) -> str:
    """The dtype of ``v: T.float32`` and ``v: T.let[T.float32]``."""
    if isinstance(annotation, ast.Subscript) and dotted(annotation.value) == "T.let":
        annotation = annotation.slice
    return dotted(annotation).removeprefix("T.")


def _is_float(node: ast.expr) -> bool:
    bare = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(bare, ast.Constant) and isinstance(bare.value, float)


def _reads(expr: TirExpr) -> bool:
    return isinstance(expr, BufferLoad) or any(map(_reads, operands(expr)))
