"""Reads applications of operators: operands, attributes, the arithmetic of Python."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from relax_egraph.errors import IllTyped, nearest
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import (
    Attr,
    Call,
    Constant,
    Expr,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    const,
)
from relax_egraph.ir.op import OPS, REQUIRED, Op, complete_attrs, infer
from relax_egraph.ir.struct_info import PrimStructInfo, StructInfo, TensorStructInfo
from relax_egraph.script.literals import read_literal
from relax_egraph.script.scope import Scope
from relax_egraph.script.source import dotted

_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.MatMult: "matmul",
    ast.Pow: "power",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "mod",
    ast.Gt: "greater",
    ast.Lt: "less",
    ast.GtE: "greater_equal",
    ast.LtE: "less_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
    ast.Invert: "bitwise_not",
    ast.Not: "logical_not",
}

_VOID: Mapping[str, frozenset[Any]] = {
    "out_dtype": frozenset({"", "void", None}),
    "layout": frozenset({"", "NCHW", "NCDHW"}),
}
"""Redundant attributes that TVM prints, with the values for which they are redundant."""


class Operators:
    """Reads applications in `scope`; `leaf` reads an operand.  Raises `ScriptError`."""

    def __init__(self, scope: Scope, leaf: Callable[[ast.expr], Expr]) -> None:
        self._scope = scope
        self._source = scope.source
        self._leaf = leaf

    def apply(
        self,
        node: ast.expr,
        op: Op,
        args: Sequence[Expr],
        attrs: Mapping[str, Attr],
        sinfo_args: tuple[StructInfo, ...] = (),
    ) -> Call:
        """Apply an operator, with the struct info of its rule."""
        if self._scope.in_dataflow and not op.pure:
            raise self._source.error(
                node,
                f"{op} has side effects, which a dataflow block does not allow",
                "move it out of `with R.dataflow():`, or use R.call_pure_packed",
            )
        operands = tuple(args)
        try:
            info = infer(Call(op, operands, attrs, sinfo_args))
        except IllTyped as problem:
            raise self._source.error(node, str(problem)) from None
        return Call(op, operands, attrs, sinfo_args, info, self._source.span(node))

    def call(self, node: ast.Call, op: Op) -> Call:
        """``R.op(operands, attributes)``, each by position or by name."""
        operands: dict[str, ast.expr] = {}
        attrs: dict[str, Attr] = {}
        names = [o.name for o in op.operands]
        slots = op.slots
        if len(node.args) > len(slots):
            takes = ", ".join(slots)
            message = f"{op} takes {len(slots)} operands ({takes}), got {len(node.args)}"
            raise self._source.error(node, message)
        passed: list[tuple[str, ast.expr, ast.AST]] = [
            (name, arg, arg) for name, arg in zip(slots, node.args, strict=False)
        ]
        passed += [(k.arg or "**", k.value, k) for k in node.keywords]
        for name, written, place in passed:
            if name in operands or name in attrs:
                raise self._source.error(place, f"{op} got {name!r} twice")
            if name in names:
                operands[name] = written
            elif name in slots:
                attrs[name] = read_literal(self._source, written)
            elif name not in _VOID or read_literal(self._source, written) not in _VOID[name]:
                has = ", ".join(a.name for a in op.attrs) or "none"
                message = f"{op} has no attribute {name!r}; it has: {has}"
                raise self._source.error(place, message, nearest(name, slots))
        args = self._operands(op, operands)
        for attr in op.attrs:
            written = attrs.get(attr.name, attr.default)
            if written is None and not attr.optional and attr.default is not REQUIRED:
                del attrs[attr.name]
            elif attr.kind == "bool" and written in (0, 1):
                attrs[attr.name] = bool(written)
        try:
            complete = complete_attrs(op, attrs)
        except IllTyped as problem:
            raise self._source.error(node, str(problem)) from None
        return self.apply(node, op, args, complete)

    def _operands(self, op: Op, by_name: Mapping[str, ast.expr]) -> list[Expr]:
        args: list[Expr] = []
        numbers: list[tuple[int, ast.expr]] = []
        left_out = ""
        for operand in op.operands:
            written = by_name.get(operand.name)
            if written is None or (operand.optional and _is_none(written)):
                left_out = left_out or operand.name
                continue
            if operand.optional and left_out:
                message = f"{op}: operand {operand.name} is given, but {left_out} before it is not"
                raise self._source.error(written, message)
            if operand.kind == "tensor" and is_number(written):
                numbers.append((len(args), written))
                args.append(StringImm(""))
            elif operand.kind == "shape" and op is OPS["strided_slice"]:
                args.append(self._positions(written))
            elif operand.kind == "shape" and isinstance(written, ast.Tuple | ast.List):
                args.append(self._shape(written, args if op is OPS["reshape"] else ()))
            elif operand.kind == "prim" and not isinstance(written, ast.Call):
                args.append(self.host_number(written))
            elif isinstance(written, ast.List) or (
                operand.kind == "tensors" and isinstance(written, ast.Tuple)
            ):
                args.append(Tuple(tuple(map(self._leaf, written.elts))))
            else:
                args.append(self._leaf(written))
        for place, written in numbers:
            args[place] = self._number(op, written, args)
        if any(isinstance(a.struct_info, TensorStructInfo) for a in args):
            kinds = [o.kind for o in op.operands]
            of_kind = zip(kinds, args, strict=False)
            return [self.as_tensor(a) if kind == "tensor" else a for kind, a in of_kind]
        return args

    def as_tensor(self, value: Expr) -> Expr:
        """A number of the host as a tensor of rank 0; any other value unchanged."""
        info = value.struct_info
        if not isinstance(info, PrimStructInfo):
            return value
        if isinstance(value, PrimValue) and isinstance(value.value, int | float):
            return const(value.value, info.dtype)
        call = Call(OPS["prim_to_tensor"], (value,), {"dtype": info.dtype})
        return self._scope.emit(replace(call, struct_info=infer(call)))

    def host_number(self, node: ast.expr) -> Expr:
        """A number of the host: a literal, arithmetic of dimensions, or a variable."""
        node = unwrapped(node, "R.prim_value")
        if isinstance(node, ast.Name) and node.id in self._scope.variables:
            return self._leaf(node)
        number = plain_number(node)
        if isinstance(number, bool):
            return PrimValue(int(number), "bool")
        if isinstance(number, float):
            return PrimValue(number, "float64")
        return PrimValue(self._scope.annotations.dim(node))

    def _positions(self, node: ast.expr) -> Expr:
        """A shape operand whose numbers may be negative, also as ``R.prim_value(n)``."""
        listed = unwrapped(node, "R.shape")
        if not isinstance(listed, ast.Tuple | ast.List):
            return self._leaf(node)
        written = [unwrapped(e, "R.prim_value") for e in listed.elts]
        return ShapeExpr(tuple(map(self._scope.annotations.dim, written)))

    def _shape(self, node: ast.Tuple | ast.List, before: Sequence[Expr]) -> ShapeExpr:
        """A shape operand; an extent -1 follows from the elements of the first operand."""
        rest = [e for e in node.elts if plain_number(e) != -1]
        info = before[0].struct_info if before else None
        if len(rest) != len(node.elts) - 1 or not isinstance(info, TensorStructInfo):
            return ShapeExpr(self._scope.annotations.shape(node))
        if info.dims is None:
            raise self._source.error(node, f"the extent -1 of {info}: needs a known shape")
        known = [self._scope.annotations.dim(e) for e in rest]
        if dims.product(known) == 0:
            raise self._source.error(node, "the extent -1 beside an extent 0 is any number")
        left = dims.floordiv(dims.product(info.dims), dims.product(known))
        place = next(k for k, e in enumerate(node.elts) if plain_number(e) == -1)
        return ShapeExpr((*known[:place], left, *known[place:]))

    def infix(self, node: ast.expr, symbol: ast.AST, sides: list[ast.expr]) -> Call:
        """``x + y``: the operator of Python's `symbol`."""
        op = OPS.get(_OPERATORS.get(type(symbol), ""))
        if op is None:
            raise self._source.error(node, f"unsupported operator in `{ast.unparse(node)}`")
        operands = dict(zip((o.name for o in op.operands), sides, strict=True))
        return self.apply(node, op, self._operands(op, operands), {})

    def _number(self, op: Op, node: ast.expr, args: Sequence[Expr]) -> Constant:
        """A number among tensors: a constant of their dtype."""
        infos = [a.struct_info for a in args]
        dtypes = [i.dtype for i in infos if isinstance(i, TensorStructInfo) and i.dtype]
        value = read_literal(self._source, node)
        dtype = next((d for d in dtypes if d != "bool"), dtypes[0] if dtypes else None)
        if dtype is None:
            message = f"{op}: the number {ast.unparse(node)} takes the dtype of another operand"
            raise self._source.error(node, message, "none is known: use R.const(number, dtype)")
        if isinstance(value, float) and not is_float(dtype):
            message = f"{op}: the number {ast.unparse(node)} is no {dtype}, the other's dtype"
            raise self._source.error(node, message)
        return const(value, dtype)


def unwrapped(node: ast.expr, wrapper: str) -> ast.expr:
    """The only operand of a call of `wrapper`; any other `node` unchanged."""
    match node:
        case ast.Call(func=func, args=[inner], keywords=[]) if dotted(func) == wrapper:
            return inner
        case _:
            return node


def plain_number(node: ast.expr) -> float | int | None:
    """The value of a number, perhaps negative; ``None`` for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = plain_number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value
    return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_number(node: ast.expr) -> bool:
    """Whether `node` is a number, perhaps negative."""
    return plain_number(node) is not None
