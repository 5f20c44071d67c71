"""Prints expressions of the graph level."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from relax_egraph.errors import IllFormed
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.struct_info import Shape, StructInfo, TupleStructInfo
from relax_egraph.script.info_printer import InfoPrinter
from relax_egraph.script.leaves import METADATA
from relax_egraph.script.literals import const_text, literal_text, quoted


class Constants:
    """Numbers the constants of a module in order of appearance; shared data has one number."""

    def __init__(self) -> None:
        self.arrays: list[npt.NDArray[Any]] = []
        self._numbers: dict[int, int] = {}

    def text(self, data: npt.NDArray[Any]) -> str:
        """The constant as an expression: a scalar by its value, any other by its number."""
        if data.ndim == 0:
            return const_text(data)
        if id(data) not in self._numbers:
            self._numbers[id(data)] = len(self.arrays)
            self.arrays.append(data)
        return f"metadata[{quoted(METADATA)}][{self._numbers[id(data)]}]"


class ExpressionPrinter:
    """Prints expressions over variables with `names`.

    `functions` are the printed names of the module's functions; `uses_module` tells whether
    any of them was printed.
    """

    def __init__(
        self, names: Mapping[Var, str], functions: Mapping[str, str], constants: Constants
    ) -> None:
        self.info = InfoPrinter(names)
        self.uses_module = False
        self._names = names
        self._functions = functions
        self._constants = constants

    def text(self, expr: Expr) -> str:
        """`expr` on one line; raises `IllFormed` for what has no form as an operand."""
        match expr:
            case Var():
                return self._names.get(expr, expr.name)
            case Call():
                head, args = self.call(expr)
                return f"{head}{', '.join(args)})"
            case Constant(data=data):
                return self._constants.text(data)
            case ShapeExpr(values=values):
                return f"R.shape({self._list(values)})"
            case PrimValue():
                return f"R.prim_value({self._prim_value(expr)})"
            case StringImm(value=value):
                return f"R.str({quoted(value)})"
            case Tuple(fields=fields):
                return self._tuple(fields)
            case TupleGetItem(tuple_value=value, index=index):
                return f"{self.text(value)}[{index}]"
            case GlobalVar(name=name):
                self.uses_module = True
                return f"cls.{self._functions.get(name, name)}"
            case ExternFunc(name=name):
                return f"R.ExternFunc({quoted(name)})"
            case If() | SeqExpr() | Function():
                kind = type(expr).__name__
                raise IllFormed(f"{kind} as an operand has no script form: bind it to a variable")

    def call(self, call: Call) -> tuple[str, list[str]]:
        """The head, up to the opening bracket, and the arguments."""
        if not isinstance(call.op, Op):
            return f"{self.text(call.op)}(", [*map(self.text, call.args), *self._said(call)]
        head = f"{call.op}("
        match call.op.name, call.args:
            case "call_tir" | "call_tir_inplace", (function, operands, *tir_vars):
                args = [self.text(function), self.text(operands)]
                args += [f"{name}={literal_text(value)}" for name, value in call.attrs.items()]
                args += self._out(call)
                return head, [*args, *(f"tir_vars={self.text(v)}" for v in tir_vars)]
            case "call_dps_packed", (ExternFunc(name=name), operands):
                return head, [quoted(name), self.text(operands), *self._out(call)]
            case "call_packed" | "call_pure_packed", (ExternFunc(name=name), *operands):
                return head, [quoted(name), *map(self.text, operands), *self._said(call)]
            case "call_inplace_packed", (ExternFunc(name=name), *operands):
                args = [quoted(name), *map(self.text, operands)]
                args += [f"{name}={literal_text(value)}" for name, value in call.attrs.items()]
                return head, [*args, *self._said(call)]
            case "print", (StringImm(value=message), *values):
                return head, [*map(self.text, values), f"format={quoted(message)}"]
            case "assert_op", (condition, StringImm(value=message), *values):
                args = map(self.text, (condition, *values))
                return head, [*args, f"format={quoted(message)}"]
            case _ if call.op.order:
                return head, [*self._in_order(call.op, call), *self._said(call)]
            case _:
                return head, [*map(self.text, call.args), *self._attrs(call), *self._said(call)]

    def _in_order(self, op: Op, call: Call) -> list[str]:
        """Operands and attributes in the order of the slots, by name except the first."""
        by_name = {attr.partition("=")[0]: attr for attr in self._attrs(call)}
        for operand, arg in zip(op.operands, call.args, strict=False):
            text = self._list(arg.values) if isinstance(arg, ShapeExpr) else self.text(arg)
            by_name[operand.name] = f"{operand.name}={text}"
        return [self.text(call.args[0]), *(by_name[s] for s in op.slots[1:] if s in by_name)]

    def _list(self, values: Shape) -> str:
        return f"[{', '.join(map(self.info.dim, values))}]"

    def _attrs(self, call: Call) -> list[str]:
        """The attributes that differ from their defaults."""
        if not isinstance(call.op, Op) or not call.op.attrs:
            return []
        complete = complete_attrs(call.op, call.attrs)
        return [
            f"{a.name}={literal_text(complete[a.name])}"
            for a in call.op.attrs
            if complete[a.name] != a.default
        ]

    def _said(self, call: Call) -> list[str]:
        if not call.sinfo_args:
            return []
        comma = "," if len(call.sinfo_args) == 1 else ""
        infos = ", ".join(map(self.info.text, call.sinfo_args))
        return [f"sinfo_args=({infos}{comma})"]

    def _out(self, call: Call) -> list[str]:
        return [f"out_sinfo={self._outputs(info)}" for info in call.sinfo_args]

    def _outputs(self, info: StructInfo) -> str:
        if isinstance(info, TupleStructInfo) and len(info.fields) > 1:
            return f"[{', '.join(map(self.info.text, info.fields))}]"
        return self.info.text(info)

    def _tuple(self, fields: tuple[Expr, ...]) -> str:
        if not fields:
            return "R.tuple()"
        comma = "," if len(fields) == 1 else ""
        return f"({', '.join(map(self.text, fields))}{comma})"

    def _prim_value(self, expr: PrimValue) -> str:
        if isinstance(expr.value, float) or is_float(expr.dtype):
            return f"T.{expr.dtype}({literal_text(float(expr.value))})"
        if expr.dtype == "bool" and isinstance(expr.value, int):
            return f"T.bool({bool(expr.value)})"
        dim = self.info.dim(expr.value)
        return dim if expr.dtype == "int64" else f"T.{expr.dtype}({dim})"
