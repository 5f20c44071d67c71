"""Reads leaves of expressions: scalars and strings of the host, constants."""

import ast

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.ir.expr import Constant, Expr, PrimValue, StringImm
from relax_egraph.script.literals import WRAPPERS, read_literal, read_string
from relax_egraph.script.operators import plain_number, unwrapped
from relax_egraph.script.scope import Scope
from relax_egraph.script.source import Source, arguments, dotted

METADATA = "relax.expr.Constant"
"""The key of the constants in the dictionary ``metadata``."""


def prim_value(scope: Scope, node: ast.Call) -> PrimValue:
    """``R.prim_value(n * 2)``, ``R.prim_value(T.float32(0.5))``."""
    by_name = arguments(scope.source, node, ("value",))
    if "value" not in by_name:
        raise scope.source.error(node, "R.prim_value takes a value")
    written = by_name["value"]
    if isinstance(written, ast.Compare):
        return condition(scope, written)
    inner = unwrapped(written, "T.bool")
    if inner is not written and not isinstance(inner, ast.Constant):
        return PrimValue(scope.annotations.dim(inner), "bool")
    if isinstance(written, ast.Call) and (name := dotted(written.func)) in WRAPPERS:
        dtype = name.removeprefix("T.")
        if is_integer(dtype) and len(written.args) == 1:
            return PrimValue(scope.annotations.dim(written.args[0]), dtype)
        value = read_literal(scope.source, written)
        return PrimValue(int(value) if dtype == "bool" else value, dtype)
    if isinstance(literal := plain_number(written), bool):
        return PrimValue(int(literal), "bool")
    if isinstance(literal, float):
        return PrimValue(literal, "float64")
    return PrimValue(scope.annotations.dim(written))


def condition(scope: Scope, node: ast.Compare) -> PrimValue:
    """``n % 16 == 0``: a dimension that is 1 where it holds, else 0, as a scalar of dtype bool."""
    a, b = scope.annotations.dim(node.left), scope.annotations.dim(node.comparators[0])
    ahead, behind = dims.sub(a, b), dims.sub(b, a)
    match node.ops:
        case [ast.Eq()]:
            value = dims.sub(1, dims.minimum(1, dims.maximum(ahead, behind)))
        case [ast.NotEq()]:
            value = dims.minimum(1, dims.maximum(ahead, behind))
        case [ast.Lt()]:
            value = dims.minimum(1, dims.maximum(0, behind))
        case [ast.LtE()]:
            value = dims.minimum(1, dims.maximum(0, dims.add(behind, 1)))
        case [ast.Gt()]:
            value = dims.minimum(1, dims.maximum(0, ahead))
        case [ast.GtE()]:
            value = dims.minimum(1, dims.maximum(0, dims.add(ahead, 1)))
        case _:
            raise scope.source.error(node, f"`{ast.unparse(node)}` is no condition on dimensions")
    return PrimValue(value, "bool")


def host_literal(source: Source, node: ast.expr) -> Expr:
    """A bare literal as an argument: a scalar or a string of the host."""
    match read_literal(source, node):
        case bool(value):
            return PrimValue(int(value), "bool")
        case int(value):
            return PrimValue(value)
        case float(value):
            return PrimValue(value, "float64")
        case str(value):
            return StringImm(value)
        case _:
            raise source.error(node, f"unsupported expression `{ast.unparse(node)}`")


def string(source: Source, node: ast.Call) -> str:
    """The string that is the only argument of a call."""
    signature = ("struct_info",) if dotted(node.func) == "R.ExternFunc" else ()
    by_name = arguments(source, node, ("value", *signature))
    if "value" not in by_name:
        raise source.error(node, f"{dotted(node.func)} takes a string")
    return read_string(source, by_name["value"], f"the argument of {dotted(node.func)}")


def metadata(scope: Scope, node: ast.expr, key: object, number: object) -> Constant:
    """``metadata["relax.expr.Constant"][0]``."""
    constants = scope.module.constants
    if key != METADATA:
        raise scope.source.error(node, f'no metadata {key!r}, only "{METADATA}"')
    if not isinstance(number, int) or not 0 <= number < len(constants):
        message = f"no constant {number}: there are {len(constants)}"
        note = "" if constants else "load_module reads them from the file beside the text"
        raise scope.source.error(node, message, note)
    return constants[number]
