"""Reads scalars of loop functions that have a name: ``v = A[i]``, ``with T.let(v, A[i]):``.

The loop language has no such node.  A scalar that reads no buffer is written where it is used;
any other is kept in a local buffer of one element, because what it reads may be written before
it is used.
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
    """A scalar that was given a name; `body` is what sees it, ``None`` for all that follows."""

    name: ast.Name
    value: ast.expr
    annotation: ast.expr | None = None
    body: list[ast.stmt] | None = None


def as_let(scope: TirScope, node: ast.stmt) -> Let | None:
    """What `node` gives a name to, if it is such a statement."""
    match node:
        case ast.Assign(targets=[ast.Name() as name], value=value):
            if isinstance(value, ast.Call) and dotted(value.func) == "T.meta_var":
                value = arguments(scope.source, value, ("value",)).get("value", value)
            return Let(name, value)
        case ast.AnnAssign(target=ast.Name() as name, annotation=said, value=ast.expr() as value):
            return Let(name, value, said)
        case ast.With(items=[ast.withitem(ast.Call() as call, target)], body=body):
            if dotted(call.func) == "T.let":
                return _block(scope, call, target, body)
        case _:
            pass
    return None


def read_let(scope: TirScope, let: Let) -> tuple[Buffer, Stmt] | None:
    """Give the name its meaning; the buffer that keeps the value, and what writes it, if needed."""
    names, name = scope.expressions.names, let.name.id
    if not isinstance(names.get(name, DimSymbol(name)), DimSymbol):
        note = f'{name} = T.alloc_buffer((1,), "float32", scope="local") may be written again'
        raise scope.error(let.name, f"{name} has a meaning already, it cannot get another", note)
    dtype = "float32" if _is_float(let.value) else "int64"
    said = dotted(let.annotation).removeprefix("T.") if let.annotation else dtype
    value = scope.expressions.typed(let.value, said)
    if let.annotation and value.dtype != said:
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
    given = [*named, *([target] if target else []), *call.args]
    match given:
        case [ast.Name() as name, value]:
            return Let(name, value, None, body)
        case _:
            message = f"`{ast.unparse(call)}` is no scalar with a name"
            raise scope.error(call, message, "write v = value, or with T.let(v, value):")


def _is_float(node: ast.expr) -> bool:
    bare = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(bare, ast.Constant) and isinstance(bare.value, float)


def _reads(expr: TirExpr) -> bool:
    return isinstance(expr, BufferLoad) or any(map(_reads, operands(expr)))
