"""Reads calls of what is below the graph: loop functions and packed functions.

They are written with what they return, ``out_sinfo``; once they were written with the shape
of it first, ``R.call_tir((n, m), f, [x])``.
"""

import ast
from collections.abc import Callable, Iterable, Mapping

from relax_egraph.ir.expr import (
    Attr,
    Call,
    Expr,
    ExternFunc,
    GlobalVar,
    ShapeExpr,
    StringImm,
    Tuple,
)
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.script.literals import read_literal
from relax_egraph.script.operators import Operators
from relax_egraph.script.scope import Scope
from relax_egraph.script.source import arguments, dotted

_TIR = ("func", "args", "out_sinfo", "tir_vars")
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "R.call_tir": _TIR,
    "R.call_tir_inplace": ("func", "args", "inplace_indices", "out_sinfo", "tir_vars"),
    "R.call_dps_packed": ("func", "args", "out_sinfo"),
    "R.call_dps": _TIR,
}
_SHAPE_FIRST = ("shape", "func", "args", "tir_vars")


class LowCalls:
    """Reads such calls in `scope`; `value` reads an expression, `leaf` an operand."""

    def __init__(
        self,
        scope: Scope,
        operators: Operators,
        value: Callable[[ast.expr], Expr],
        leaf: Callable[[ast.expr], Expr],
    ) -> None:
        self._scope = scope
        self._source = scope.source
        self._operators = operators
        self._value = value
        self._leaf = leaf

    def call_tir(self, node: ast.Call, declared: StructInfo | None) -> Call:
        """``R.call_tir(cls.f, (x,), out_sinfo=…)``, and what is written like it."""
        name = dotted(node.func)
        if self._is_shape_first(node, name):
            return self._shape_first(node, name, declared)
        given = arguments(self._source, node, _PARAMETERS[name])
        packed = name == "R.call_dps_packed"
        args: list[Expr] = []
        if "func" in given:
            args.append((self._packed if packed else self._value)(given["func"]))
        if "args" in given:
            args.append(self._operand_tuple(given["args"]))
        if "tir_vars" in given:
            args.append(ShapeExpr(self._scope.annotations.shape(given["tir_vars"])))
        attrs: dict[str, Attr] = {}
        if "inplace_indices" in given:
            attrs["inplace_indices"] = read_literal(self._source, given["inplace_indices"])
        return self._operators.apply(node, OPS[name[2:]], args, attrs, self._out(given))

    def call_packed(self, node: ast.Call, declared: StructInfo | None) -> Call:
        """``R.call_packed("f", x, sinfo_args=…)``; in older scripts the annotation says it."""
        args: list[Expr] = [self._packed(a) for a in node.args[:1]]
        args += [self._leaf(a) for a in node.args[1:]]
        name, said = dotted(node.func)[2:], self.sinfo_args(node)
        if self._scope.older:
            name = "call_pure_packed" if self._scope.in_dataflow else name
            said = said or (() if declared is None else (declared,))
        return self._operators.apply(node, OPS[name], args, {}, said)

    def call_inplace_packed(self, node: ast.Call, _: StructInfo | None) -> Call:
        """``R.call_inplace_packed("f", x, inplace_indices=[0], sinfo_args=…)``."""
        args = [*map(self._packed, node.args[:1]), *map(self._leaf, node.args[1:])]
        given = self._keywords(node, ("inplace_indices", "sinfo_args"))
        attrs: dict[str, Attr] = {}
        if "inplace_indices" in given:
            attrs["inplace_indices"] = read_literal(self._source, given["inplace_indices"])
        said = self._infos(given["sinfo_args"]) if "sinfo_args" in given else ()
        out = said if len(said) < 2 else (TupleStructInfo(said),)
        return self._operators.apply(node, OPS["call_inplace_packed"], args, attrs, out)

    def message(self, node: ast.Call, _: StructInfo | None) -> Call:
        """``R.print(x, format="x is {}")``, ``R.assert_op(condition, x, format="x is {}")``."""
        name = dotted(node.func)[2:]
        given = self._keywords(node, ("format", "format_args"))
        written = given.get("format", ast.copy_location(ast.Constant(""), node))
        format = self._value(written)
        if not isinstance(format, StringImm):
            raise self._source.error(written, f"R.{name}: the format is no string")
        written = [*node.args, *([given["format_args"]] if "format_args" in given else [])]
        listed = [a.elts if isinstance(a, ast.Tuple | ast.List) else [a] for a in written]
        values = [self._leaf(a) for several in listed for a in several]
        place = 1 if name == "assert_op" else 0
        return self._operators.apply(
            node, OPS[name], [*values[:place], format, *values[place:]], {}
        )

    def sinfo_args(self, node: ast.Call) -> tuple[StructInfo, ...]:
        """What a call says of its result by the keyword ``sinfo_args``, the only one it has."""
        given = self._keywords(node, ("sinfo_args",))
        return self._infos(given["sinfo_args"]) if given else ()

    # --- the shape first --------------------------------------------------------------

    def _is_shape_first(self, node: ast.Call, name: str) -> bool:
        """Whether the first argument is no function."""
        if name == "R.call_dps":
            return True
        if name == "R.call_tir_inplace" or len(node.args) < 2:
            return False
        match node.args[0]:
            case ast.Tuple() | ast.List() | ast.Call() | ast.Attribute(attr="shape"):
                return True
            case ast.Name(id=first):
                return first in self._scope.variables
            case _:
                return False

    def _shape_first(self, node: ast.Call, name: str, declared: StructInfo | None) -> Call:
        given = arguments(self._source, node, _SHAPE_FIRST)
        if missing := [n for n in _SHAPE_FIRST[:3] if n not in given]:
            message = (
                f"{name} takes a shape, a function and a list of operands, got no {missing[0]}"
            )
            raise self._source.error(node, message, "today: R.call_tir(f, (x,), out_sinfo=…)")
        callee, operands = self._packed(given["func"]), self._operand_tuple(given["args"])
        shapes = _several(given["shape"])
        made = callee.struct_info.ret if isinstance(callee.struct_info, FuncStructInfo) else None
        count = len(shapes or [node])
        dtypes = self._dtypes(node, name, count, (declared, made), operands)
        if shapes is None:
            out: StructInfo = self._tensor(given["shape"], dtypes[0])
        else:
            out = TupleStructInfo(tuple(map(self._tensor, shapes, dtypes)))
        args = [callee, operands]
        if "tir_vars" in given:
            if not isinstance(callee, GlobalVar):
                message = f"{name}: a packed function takes no tir_vars"
                raise self._source.error(given["tir_vars"], message)
            args.append(ShapeExpr(self._scope.annotations.shape(given["tir_vars"])))
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
        said: Iterable[StructInfo | None],
        operands: Expr,
    ) -> list[str]:
        """The dtypes of the results: what is `said` of all has them, else the first operand."""
        fields = operands.fields if isinstance(operands, Tuple) else ()
        first = next(filter(None, (_dtype(f.struct_info) for f in fields)), "")
        found = [""] * count
        for info in said:
            several = info.fields if isinstance(info, TupleStructInfo) else (info,)
            if len(several) == count:
                found = [f or _dtype(i) for f, i in zip(found, several, strict=True)]
        found = [f or first for f in found]
        if not all(found):
            message = f"{name}: nothing says the dtype of the result"
            raise self._source.error(node, message, 'annotate it: y: R.Tensor((…), "float32") = …')
        return found

    # --- parts ------------------------------------------------------------------------

    def _packed(self, node: ast.expr) -> Expr:
        value = self._value(node)
        return ExternFunc(value.value) if isinstance(value, StringImm) else value

    def _keywords(self, node: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
        """What a call gives by keyword; these are all it may."""
        named = ast.copy_location(ast.Call(node.func, [], node.keywords), node)
        return arguments(self._source, named, names)

    def _operand_tuple(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.Tuple | ast.List):
            return Tuple(tuple(map(self._leaf, node.elts)))
        value = self._leaf(node)
        return value if isinstance(value.struct_info, TupleStructInfo) else Tuple((value,))

    def _out(self, given: Mapping[str, ast.expr]) -> tuple[StructInfo, ...]:
        if "out_sinfo" not in given:
            return ()
        infos = self._infos(given["out_sinfo"])
        return infos if len(infos) == 1 else (TupleStructInfo(infos),)

    def _infos(self, node: ast.expr) -> tuple[StructInfo, ...]:
        several = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        return tuple(map(self._scope.annotations.struct_info, several))


def _dtype(info: StructInfo | None) -> str:
    """The dtype of a tensor, empty if it is not known."""
    return (info.dtype or "") if isinstance(info, TensorStructInfo) else ""


def _several(node: ast.expr) -> list[ast.expr] | None:
    """The shapes of a tuple of shapes; ``None`` of one shape."""
    if not isinstance(node, ast.Tuple | ast.List) or not node.elts:
        return None
    return node.elts if all(isinstance(e, ast.Tuple | ast.List) for e in node.elts) else None
