"""Reads calls of functions below the graph: loop functions and packed functions.

Today's form has the struct info of the results, ``out_sinfo``; older ones have the shape of the
result first, ``R.call_tir((n, m), f, [x])``.
"""

import ast
from collections.abc import Iterable, Mapping

from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import (
    Attr,
    Call,
    Expr,
    ExternFunc,
    GlobalVar,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.script.call_reader import CallReader
from relax_egraph.script.literals import read_literal
from relax_egraph.script.operators import Operators
from relax_egraph.script.source import arguments, dotted

_TIR = ("func", "args", "out_sinfo", "tir_vars")
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "R.call_tir": _TIR,
    "R.call_tir_with_grad": (*_TIR, "te_grad_name", "te_grad_kwargs"),
    "R.call_tir_inplace": ("func", "args", "inplace_indices", "out_sinfo", "tir_vars"),
    "R.call_dps_packed": ("func", "args", "out_sinfo"),
    "R.call_dps": _TIR,
}
_SHAPE_FIRST = ("shape", "func", "args", "tir_vars")


class LowCalls(CallReader):
    """Reads such calls."""

    def call_tir(self, node: ast.Call, declared: StructInfo | None) -> Call:
        """``R.call_tir(cls.f, (x,), out_sinfo=…)``, and similar calls."""
        name = dotted(node.func)
        if self._is_shape_first(node, name):
            return self._shape_first(node, name, declared)
        by_name = arguments(self._source, node, _PARAMETERS[name])
        packed = name == "R.call_dps_packed"
        args: list[Expr] = []
        if "func" in by_name:
            args.append((self._packed if packed else self._value)(by_name["func"]))
        if "args" in by_name:
            args.append(self._operand_tuple(by_name["args"]))
        if "tir_vars" in by_name:
            args.append(ShapeExpr(self._scope.annotations.shape(by_name["tir_vars"])))
        attrs: dict[str, Attr] = {}
        if "inplace_indices" in by_name:
            attrs["inplace_indices"] = read_literal(self._source, by_name["inplace_indices"])
        op = OPS["call_tir" if name == "R.call_tir_with_grad" else name[2:]]
        return self._operators.apply(node, op, args, attrs, self._out(by_name))

    def call_packed(self, node: ast.Call, declared: StructInfo | None) -> Call:
        """``R.call_packed("f", x, sinfo_args=…)``; older scripts annotate the result."""
        args: list[Expr] = [self._packed(a) for a in node.args[:1]]
        args += [self._leaf(a) for a in node.args[1:]]
        name, claims = dotted(node.func)[2:], self.sinfo_args(node)
        if self._scope.older:
            name = "call_pure_packed" if self._scope.in_dataflow else name
            claims = claims or (() if declared is None else (declared,))
        return self._operators.apply(node, OPS[name], args, {}, claims)

    def call_inplace_packed(self, node: ast.Call, _: StructInfo | None) -> Call:
        """``R.call_inplace_packed("f", x, inplace_indices=[0], sinfo_args=…)``."""
        args = [*map(self._packed, node.args[:1]), *map(self._leaf, node.args[1:])]
        by_name = self._keywords(node, ("inplace_indices", "sinfo_args"))
        attrs: dict[str, Attr] = {}
        if "inplace_indices" in by_name:
            attrs["inplace_indices"] = read_literal(self._source, by_name["inplace_indices"])
        claims = self._infos(by_name["sinfo_args"]) if "sinfo_args" in by_name else ()
        out = claims if len(claims) < 2 else (TupleStructInfo(claims),)
        return self._operators.apply(node, OPS["call_inplace_packed"], args, attrs, out)

    def message(self, node: ast.Call, _: StructInfo | None) -> Call:
        """``R.print(x, format="x is {}")``, ``R.assert_op(condition, x, format="x is {}")``."""
        name = dotted(node.func)[2:]
        by_name = self._keywords(node, ("format", "format_args"))
        written = by_name.get("format", ast.copy_location(ast.Constant(""), node))
        format = self._value(written)
        if not isinstance(format, StringImm):
            raise self._source.error(written, f"R.{name}: the format is no string")
        written = [*node.args, *([by_name["format_args"]] if "format_args" in by_name else [])]
        listed = [a.elts if isinstance(a, ast.Tuple | ast.List) else [a] for a in written]
        values = [self._leaf(a) for several in listed for a in several]
        place = 1 if name == "assert_op" else 0
        return self._operators.apply(
            node, OPS[name], [*values[:place], format, *values[place:]], {}
        )

    def sinfo_args(self, node: ast.Call) -> tuple[StructInfo, ...]:
        """The claims on the result, by ``sinfo_args``, the only keyword of the call."""
        by_name = self._keywords(node, ("sinfo_args",))
        return self._infos(by_name["sinfo_args"]) if by_name else ()

    # --- the shape first --------------------------------------------------------------

    def _is_shape_first(self, node: ast.Call, name: str) -> bool:
        """Whether the first argument is a shape, not a function."""
        if name == "R.call_dps":
            return True
        if name == "R.call_tir_inplace" or len(node.args) < 2:
            return False
        match node.args[0]:
            case ast.Call(func=func) if dotted(func) == "R.ExternFunc":
                return False
            case ast.Tuple() | ast.List() | ast.Call() | ast.Attribute(attr="shape"):
                return True
            case ast.Name(id=first) if first in self._scope.variables:
                return not isinstance(self._external(first), ExternFunc)
            case _:
                return False

    def _shape_first(self, node: ast.Call, name: str, declared: StructInfo | None) -> Call:
        by_name = arguments(self._source, node, _SHAPE_FIRST)
        if missing := [n for n in _SHAPE_FIRST[:3] if n not in by_name]:
            message = (
                f"{name} takes a shape, a function and a list of operands, got no {missing[0]}"
            )
            raise self._source.error(node, message, "today: R.call_tir(f, (x,), out_sinfo=…)")
        callee, operands = self._packed(by_name["func"]), self._operand_tuple(by_name["args"])
        shapes = _several(by_name["shape"])
        returned = (
            callee.struct_info.ret if isinstance(callee.struct_info, FuncStructInfo) else None
        )
        count = len(shapes or [node])
        dtypes = self._dtypes(node, name, count, (declared, returned), operands)
        if shapes is None:
            out: StructInfo = self._tensor(by_name["shape"], dtypes[0])
        else:
            out = TupleStructInfo(tuple(map(self._tensor, shapes, dtypes)))
        args = [callee, operands]
        if "tir_vars" in by_name:
            if not isinstance(callee, GlobalVar):
                message = f"{name}: a packed function takes no tir_vars"
                raise self._source.error(by_name["tir_vars"], message)
            args.append(ShapeExpr(self._scope.annotations.shape(by_name["tir_vars"])))
        op = OPS["call_tir" if isinstance(callee, GlobalVar) else "call_dps_packed"]
        return self._operators.apply(node, op, args, {}, (out,))

    def _tensor(self, node: ast.expr, dtype: str) -> TensorStructInfo:
        annotations = self._scope.annotations
        if isinstance(node, ast.Tuple | ast.List):
            return tensor(annotations.shape(node), dtype)
        if isinstance(node, ast.Name) and node.id in self._scope.variables:
            return annotations.of_shape(node, dtype)
        value = self._leaf(node)
        info = value.struct_info
        if not isinstance(info, ShapeStructInfo):
            raise self._source.error(node, f"`{ast.unparse(node)}` is {info}, needs a shape")
        return (
            TensorStructInfo(value, dtype, info.ndim)
            if info.values is None
            else tensor(info.values, dtype)
        )

    def _dtypes(
        self,
        node: ast.Call,
        name: str,
        count: int,
        claims: Iterable[StructInfo | None],
        operands: Expr,
    ) -> list[str]:
        """The dtypes of the results: those of `claims`, else that of the first operand."""
        fields = operands.fields if isinstance(operands, Tuple) else ()
        first = next(filter(None, (_dtype(f.struct_info) for f in fields)), "")
        dtypes = [""] * count
        for info in claims:
            several = info.fields if isinstance(info, TupleStructInfo) else (info,)
            if len(several) == count:
                dtypes = [f or _dtype(i) for f, i in zip(dtypes, several, strict=True)]
        dtypes = [f or first for f in dtypes]
        if not all(dtypes):
            message = f"{name}: nothing says the dtype of the result"
            raise self._source.error(node, message, 'annotate it: y: R.Tensor((…), "float32") = …')
        return dtypes

    # --- parts ------------------------------------------------------------------------

    def _packed(self, node: ast.expr) -> Expr:
        value = self._value(node)
        if isinstance(node, ast.Name) and isinstance(value, Var):
            return self._external(node.id) or value
        return ExternFunc(value.value) if isinstance(value, StringImm) else value

    def _external(self, name: str) -> Expr | None:
        """The packed function that a variable of the open block is bound to."""
        bound = (b for b in reversed(self._scope.bindings) if b.var.name == name)
        value = next((b.value for b in bound if isinstance(b, VarBinding)), None)
        return value if isinstance(value, ExternFunc) else None

    def _keywords(self, node: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
        """The keyword arguments of a call; others than `names` are errors."""
        named = ast.copy_location(ast.Call(node.func, [], node.keywords), node)
        return arguments(self._source, named, names)

    def _operand_tuple(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.Tuple | ast.List):
            return Tuple(tuple(_passed(self._operators, self._leaf(e)) for e in node.elts))
        value = self._leaf(node)
        info = value.struct_info
        if isinstance(value, Var) and isinstance(info, TupleStructInfo):
            fields = [TupleGetItem(value, k) for k in range(len(info.fields))]
            return Tuple(tuple(map(self._scope.emit, fields)))
        return value if isinstance(info, TupleStructInfo) else Tuple((value,))

    def _out(self, by_name: Mapping[str, ast.expr]) -> tuple[StructInfo, ...]:
        if "out_sinfo" not in by_name:
            return ()
        infos = self._infos(by_name["out_sinfo"])
        return infos if len(infos) == 1 else (TupleStructInfo(infos),)

    def _infos(self, node: ast.expr) -> tuple[StructInfo, ...]:
        several = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        return tuple(map(self._scope.annotations.struct_info, several))


def _passed(operators: Operators, value: Expr) -> Expr:
    """An operand of a function below the graph, which takes a float as a tensor of rank 0."""
    info = value.struct_info
    is_scalar = isinstance(info, PrimStructInfo) and is_float(info.dtype)
    return operators.as_tensor(value) if is_scalar else value


def _dtype(info: StructInfo | None) -> str:
    """The dtype of a tensor, empty if it is unknown."""
    return (info.dtype or "") if isinstance(info, TensorStructInfo) else ""


def _several(node: ast.expr) -> list[ast.expr] | None:
    """The shapes of a tuple of shapes; ``None`` of one shape."""
    if not isinstance(node, ast.Tuple | ast.List) or not node.elts:
        return None
    return node.elts if all(isinstance(e, ast.Tuple | ast.List) for e in node.elts) else None
