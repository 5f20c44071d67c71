"""Reads scalar expressions of the loop language, exactly as written: nothing is folded."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.errors import nearest
from relax_egraph.ir.dtypes import DTYPES, is_float
from relax_egraph.ir.form import FUNCTIONS, SIGNS
from relax_egraph.script.literals import read_dtype, read_literal
from relax_egraph.script.source import Source, arguments, dotted
from relax_egraph.script.tir_numbers import as_float, extreme, quotient
from relax_egraph.tir.expr import (
    HANDLE,
    LOGICAL,
    Binary,
    BinaryKind,
    Buffer,
    BufferLoad,
    Cast,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    from_dim,
)
from relax_egraph.tir.functions import INTRINSICS

Meaning: TypeAlias = TirExpr | Buffer
"""The meaning of a name in a loop function."""

Weak: TypeAlias = TirExpr | int | float
"""An expression, or a bare number whose dtype its context decides."""

_BINARY: Mapping[type[ast.AST], BinaryKind] = {
    **SIGNS,
    ast.Div: "/",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.And: "and",
    ast.Or: "or",
}
_NAMED_BINARY: Mapping[str, BinaryKind] = {
    **FUNCTIONS,
    "T.And": "and",
    "T.Or": "or",
}
_BITS: Mapping[type[ast.AST], str] = {
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
}
_SELECTS = {"T.Select": False, "T.if_then_else": True}
"""Whether the other side is left unevaluated."""


_IMMEDIATES: Mapping[str, str] = {f"T.{dtype}": dtype for dtype in DTYPES}
KNOWN = (
    *(f"T.{name}" for name in INTRINSICS),
    *_NAMED_BINARY,
    *_SELECTS,
    *_IMMEDIATES,
    *("T.Cast", "T.cast", "T.Not", "T.Div", "T.truncdiv", "T.let", "T.const"),
    *("T.min_value", "T.max_value", "T.infinity"),
)
"""The functions of scalar expressions."""


@dataclass(slots=True)
class TirExpressions:
    """Reads expressions over the names in scope; raises `ScriptError`."""

    source: Source
    names: dict[str, Meaning] = field(default_factory=dict[str, Meaning])

    def index(self, node: ast.expr) -> TirExpr:
        """An extent or an index: bare numbers are ``int64``."""
        return self.typed(node, "int64")

    def typed(self, node: ast.expr, dtype: str) -> TirExpr:
        """An expression in which a bare number is of `dtype`."""
        return self._strong(node, self._weak(node), dtype)

    def condition(self, node: ast.expr) -> TirExpr:
        """An expression of dtype ``bool``."""
        value = self.typed(node, "bool")
        if value.dtype != "bool":
            message = f"the condition `{ast.unparse(node)}` is {value.dtype}, needs bool"
            raise self.source.error(node, message)
        return value

    def element(self, node: ast.expr) -> tuple[Buffer, tuple[TirExpr, ...]]:
        """The buffer and the indices of ``A[i, j]``; ``A[()]`` is the element of a scalar."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            raise self.source.error(node, f"`{ast.unparse(node)}` is no element of a buffer")
        buffer = self.buffer(node.value)
        inner = node.slice
        indices = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if len(indices) != len(buffer.shape):
            message = f"{buffer.name} has {len(buffer.shape)} axes, got {len(indices)} indices"
            raise self.source.error(node, message)
        return buffer, tuple(map(self.index, indices))

    def indices(self, nodes: Sequence[ast.expr]) -> list[TirExpr]:
        """Extents or indices, some perhaps by a whole shape: ``T.grid(*X.shape, 4)``."""
        values: list[TirExpr] = []
        for node in nodes:
            if isinstance(node, ast.Starred) and (owner := _shape_owner(node.value)):
                values += map(from_dim, self.buffer(owner).shape)
            else:
                values.append(self.index(node))
        return values

    def buffer(self, node: ast.Name) -> Buffer:
        """The buffer of a name."""
        meaning = self._meaning(node)
        if not isinstance(meaning, Buffer):
            raise self.source.error(node, f"{node.id} is a scalar, needs a buffer")
        if meaning.dtype == HANDLE:
            message = f"{node.id} is a handle of unknown shape, it has no elements"
            note = f'declare it: X = T.match_buffer({node.id}, (…), "float32")'
            raise self.source.error(node, message, note)
        return meaning

    # --- numbers ----------------------------------------------------------------------

    def _strong(self, node: ast.expr, value: Weak, dtype: str) -> TirExpr:
        if not isinstance(value, int | float):
            return value
        if isinstance(value, float) and not is_float(dtype):
            raise self.source.error(node, f"the number {ast.unparse(node)} is no {dtype}")
        return Imm(float(value) if is_float(dtype) else value, dtype)

    def _unified(self, nodes: list[ast.expr], what: str) -> list[TirExpr]:
        """Operands of one dtype: that of the first operand that is no bare number."""
        values = [self._weak(n) for n in nodes]
        known = [v.dtype for v in values if not isinstance(v, int | float)]
        strong = next(filter(is_float, known), known[0] if known else None)
        default = "float32" if any(isinstance(v, float) for v in values) else "int64"
        dtype = strong or default
        operands = [self._strong(n, v, dtype) for n, v in zip(nodes, values, strict=True)]
        operands = [as_float(o, dtype) if is_float(dtype) else o for o in operands]
        for node, value in zip(nodes, operands, strict=True):
            if value.dtype != dtype:
                message = f"{what}: `{ast.unparse(node)}` is {value.dtype}, needs {dtype}"
                raise self.source.error(node, message)
        return operands

    # --- expressions ------------------------------------------------------------------

    def _weak(self, node: ast.expr) -> Weak:
        match node:
            case ast.Constant(value=bool(value)):
                return Imm(int(value), "bool")
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.Name():
                meaning = self._meaning(node)
                if isinstance(meaning, Buffer):
                    message = f"{node.id} is a buffer, needs an element of it"
                    raise self.source.error(node, message)
                return meaning
            case ast.Subscript(value=whole, slice=place) if owner := _shape_owner(whole):
                return self._extent(node, self.buffer(owner), place)
            case ast.Subscript():
                return BufferLoad(*self.element(node))
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
                return self._binary(_BINARY[type(op)], [a, b])
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _BITS:
                name = _BITS[type(op)]
                return Intrinsic(name, tuple(self._unified([a, b], f"the operands of T.{name}")))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return Intrinsic("bitwise_not", (self.typed(operand, "int64"),))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in _BINARY:
                return self._binary(_BINARY[type(op)], [a, b])
            case ast.BoolOp(op=op, values=operands):
                return self._binary(_BINARY[type(op)], operands)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._negative(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self.condition(operand))
            case ast.Call():
                return self._call(node)
            case _:
                pass
        raise self.source.error(node, f"unsupported expression `{ast.unparse(node)}`")

    def _extent(self, node: ast.expr, buffer: Buffer, place: ast.expr) -> TirExpr:
        """``X.shape[1]``."""
        number, shape = read_literal(self.source, place), buffer.shape
        if not isinstance(number, int) or not -len(shape) <= number < len(shape):
            message = f"`{ast.unparse(node)}`: {buffer.name} has {len(shape)} axes"
            raise self.source.error(node, message)
        return from_dim(shape[number])

    def _binary(self, kind: BinaryKind, nodes: list[ast.expr]) -> TirExpr:
        if kind in LOGICAL:
            operands = [self.condition(n) for n in nodes]
        else:
            operands = self._unified(nodes, f"the operands of {kind}")
        result, *rest = operands
        for other in rest:
            result = Binary(kind, result, other)
        return result

    def _negative(self, node: ast.expr) -> Weak:
        value = self._weak(node)
        if isinstance(value, int | float):
            return -value
        return Binary("-", Imm(0.0 if is_float(value.dtype) else 0, value.dtype), value)

    def _call(self, node: ast.Call) -> TirExpr:
        name = dotted(node.func)
        short = name.removeprefix("T.")
        if name in _IMMEDIATES:
            return self._immediate(node, _IMMEDIATES[name])
        if short in INTRINSICS and name != short:
            self._count(node, name, INTRINSICS[short])
            return Intrinsic(short, tuple(self._unified(node.args, name)))
        if name in _NAMED_BINARY:
            self._count(node, name, 2)
            return self._binary(_NAMED_BINARY[name], node.args)
        if name in _SELECTS:
            self._count(node, name, 3)
            condition = self.condition(node.args[0])
            a, b = self._unified(node.args[1:], name)
            return Select(condition, a, b, _SELECTS[name])
        match name:
            case "T.Cast" | "T.cast":
                order = ("dtype", "value") if name == "T.Cast" else ("value", "dtype")
                by_name = arguments(self.source, node, order)
                if len(by_name) < 2:
                    raise self.source.error(node, f"{name} takes a dtype and a value")
                value = self._weak(by_name["value"])
                default = "float32" if isinstance(value, float) else "int64"
                strong = self._strong(by_name["value"], value, default)
                return Cast(read_dtype(self.source, by_name["dtype"]), strong)
            case "T.let":
                return self._let(node)
            case "T.min_value" | "T.max_value" | "T.infinity":
                self._count(node, name, 1)
                return extreme(name, read_dtype(self.source, node.args[0]))
            case "T.const":
                by_name = arguments(self.source, node, ("value", "dtype"))
                if len(by_name) < 2:
                    raise self.source.error(node, "T.const takes a number and a dtype")
                dtype = read_dtype(self.source, by_name["dtype"])
                return self.typed(by_name["value"], dtype)
            case "T.Div" | "T.truncdiv":
                self._count(node, name, 2)
                return quotient(*self._unified(node.args, name))
            case "T.Not":
                self._count(node, name, 1)
                return Not(self.condition(node.args[0]))
            case _:
                message = f"unknown function {name or ast.unparse(node.func)}"
                raise self.source.error(node, message, nearest(name, KNOWN))

    def _let(self, node: ast.Call) -> TirExpr:
        """``T.let(v, value, body)``: `body` with `value` substituted for `v`."""
        self._count(node, "T.let", 3)
        name, value, body = node.args
        if not isinstance(name, ast.Name):
            raise self.source.error(name, f"`{ast.unparse(name)}` is no variable")
        default = "float32" if isinstance(weak := self._weak(value), float) else "int64"
        before, self.names = self.names, {**self.names, name.id: self._strong(value, weak, default)}
        result = self.index(body)
        self.names = before
        return result

    def _immediate(self, node: ast.Call, dtype: str) -> TirExpr:
        """``T.float32(0.5)``, ``T.float32("inf")``; for anything but a literal it is a cast."""
        self._count(node, f"T.{dtype}", 1)
        inner = node.args[0]
        bare = inner.operand if isinstance(inner, ast.UnaryOp) else inner
        if not isinstance(bare, ast.Constant):
            return Cast(dtype, self.typed(inner, dtype))
        value = read_literal(self.source, node)
        return Imm(int(value) if dtype == "bool" else value, dtype)

    def _count(self, node: ast.Call, name: str, count: int) -> None:
        named = [k for k in node.keywords if k.arg != "dtype"]
        if len(node.args) != count or named:
            raise self.source.error(node, f"{name} takes {count} operands, got {len(node.args)}")

    def _meaning(self, node: ast.Name) -> Meaning:
        meaning = self.names.get(node.id)
        if meaning is None:
            note = nearest(node.id, self.names)
            raise self.source.error(node, f"undefined variable {node.id}", note)
        return meaning


def _shape_owner(node: ast.expr) -> ast.Name | None:
    """The buffer of ``X.shape``."""
    match node:
        case ast.Attribute(value=ast.Name() as owner, attr="shape"):
            return owner
        case _:
            return None
