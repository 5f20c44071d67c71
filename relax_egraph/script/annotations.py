"""Reads annotations, ``R.Tensor((n, 784), "float32")``, and the dimensions in them."""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from relax_egraph.errors import nearest
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.expr import Var
from relax_egraph.ir.form import Algebra, Form, fold, read
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.syntax import parsed_expression
from relax_egraph.script.literals import read_dtype, read_literal
from relax_egraph.script.source import Source, arguments, dotted
from relax_egraph.script.spellings import DTYPE_NAMES
from relax_egraph.script.subscripts import as_call, is_unknown

_NOT_A_DIM = "is no dimension: it is not built of + - * // % min max"


@dataclass(slots=True)
class Annotations:
    """Reads annotations in a scope of symbols and variables.

    `defining` is set for signatures and patterns: an unknown symbol in a string is then a new one,
    and also one outside of a string if `bare` is set.
    """

    source: Source
    symbols: set[str]
    variables: Mapping[str, Var] = field(default_factory=dict[str, Var])
    defining: bool = False
    bare: bool = False
    _seen: dict[str, StructInfo] = field(default_factory=dict[str, StructInfo])

    def pattern(self, *, bare: bool = True) -> "Annotations":
        """The same scope for patterns: strings define symbols, and bare names if `bare`."""
        return replace(self, defining=True, bare=bare)

    # --- struct info ------------------------------------------------------------------

    def struct_info(self, node: ast.expr) -> StructInfo:
        """The struct info of an annotation."""
        cached = not self.defining and not isinstance(node, ast.Subscript)
        text = self.source.written(node) if cached else None
        if text is not None and _OF_A_VARIABLE.search(text):
            text = None
        if text in self._seen:
            return self._seen[text]
        info = self._struct_info(node)
        if text is not None and not _mentions_a_variable(info):
            self._seen[text] = info
        return info

    def _struct_info(self, node: ast.expr) -> StructInfo:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="ty" | "struct_info") if (
                name in self.variables
            ):
                return self.variables[name].struct_info
            case ast.Subscript(value=ast.expr() as named):
                call = as_call(node, self._is_shape)
            case ast.Call(func=named):
                call = node
            case named:
                call = ast.copy_location(ast.Call(node, [], []), node)
        name = dotted(named)
        match f"R.{name}" if name in _BARE else name:
            case "R.Tensor":
                return self._tensor(call, computed=not isinstance(node, ast.Subscript))
            case "R.Shape":
                return self._shape_info(call)
            case "R.Tuple":
                return self._tuple(call)
            case "R.Prim":
                return self._prim(call)
            case "R.Object":
                arguments(self.source, call, ())
                return ObjectStructInfo()
            case "R.Callable":
                return self._callable(call)
            case _:
                known = ("R.Tensor", "R.Shape", "R.Tuple", "R.Prim", "R.Object", "R.Callable")
                message = f"`{ast.unparse(node)}` is no annotation"
                raise self.source.error(node, message, nearest(name, known))

    def _tensor(self, node: ast.Call, *, computed: bool) -> TensorStructInfo:
        """A tensor; a shape that is a variable stays a variable if `computed`."""
        by_name = arguments(self.source, _without_device(node), ("shape", "dtype", "ndim"))
        shape = by_name.get("shape")
        if _names_a_dtype(shape) and "dtype" not in by_name:
            by_name["dtype"], shape = shape, None  # R.Tensor("float32", ndim=2)
        dtype = None
        if "dtype" in by_name and not is_unknown(by_name["dtype"]):
            dtype = read_dtype(self.source, by_name["dtype"])
        ndim = self._int(by_name["ndim"], "ndim") if "ndim" in by_name else -1
        if shape is None or is_unknown(shape):
            return TensorStructInfo(None, dtype, ndim)
        if isinstance(shape, ast.Name) and shape.id in self.variables:
            info = self.of_shape(shape, dtype, computed=computed)
            return info if ndim < 0 else replace(info, ndim=ndim)
        if isinstance(shape, ast.Tuple | ast.List) and any(map(is_unknown, shape.elts)):
            return TensorStructInfo(None, dtype, len(shape.elts))
        known = self.shape(shape)
        if ndim not in (-1, len(known)):
            raise self.source.error(node, f"ndim is {ndim}, but the shape has {len(known)} axes")
        return tensor(known, dtype)

    def of_shape(
        self, node: ast.Name, dtype: str | None, *, computed: bool = False
    ) -> TensorStructInfo:
        """A tensor whose shape is the value of a variable.

        The shape is the variable if it is `computed` or its extents are unknown, else the extents.
        """
        variable = self.variables[node.id]
        info = variable.struct_info
        if isinstance(info, ObjectStructInfo):
            return TensorStructInfo(variable, dtype)
        if not isinstance(info, ShapeStructInfo):
            raise self.source.error(node, f"{node.id} is {info}, needs a shape")
        if info.values is not None and not computed:
            return tensor(info.values, dtype)
        return TensorStructInfo(variable, dtype, info.ndim)

    def _is_shape(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.variables

    def _shape_info(self, node: ast.Call) -> ShapeStructInfo:
        by_name = arguments(self.source, node, ("values", "ndim"))
        if "values" in by_name and not is_unknown(by_name["values"]):
            values = self.shape(by_name["values"])
            return ShapeStructInfo(values, len(values))
        return ShapeStructInfo(
            None, self._int(by_name["ndim"], "ndim") if "ndim" in by_name else -1
        )

    def _tuple(self, node: ast.Call) -> TupleStructInfo:
        fields = node.args
        if len(fields) == 1 and isinstance(fields[0], ast.List | ast.Tuple):
            fields = fields[0].elts
        if node.keywords:
            arguments(self.source, node, ())
        return TupleStructInfo(tuple(map(self._struct_info, fields)))

    def _prim(self, node: ast.Call) -> PrimStructInfo:
        by_name = arguments(self.source, node, ("dtype", "value"))
        dtype = read_dtype(self.source, by_name["dtype"]) if "dtype" in by_name else "int64"
        return PrimStructInfo(dtype, self.dim(by_name["value"]) if "value" in by_name else None)

    def _callable(self, node: ast.Call) -> FuncStructInfo:
        by_name = arguments(self.source, node, ("params", "ret", "purity"))
        params = None
        if "params" in by_name and not is_unknown(by_name["params"]):
            listed = by_name["params"]
            if not isinstance(listed, ast.List | ast.Tuple):
                raise self.source.error(listed, "R.Callable takes its parameters as a tuple")
            params = tuple(map(self._struct_info, listed.elts))
        ret = self._struct_info(by_name["ret"]) if "ret" in by_name else ObjectStructInfo()
        purity = read_literal(self.source, by_name["purity"]) if "purity" in by_name else True
        return FuncStructInfo(params, ret, bool(purity))

    def _int(self, node: ast.expr, what: str) -> int:
        value = read_literal(self.source, node)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.source.error(node, f"{what} is `{ast.unparse(node)}`, needs an int")
        return value

    # --- dimensions -------------------------------------------------------------------

    def shape(self, node: ast.expr) -> Shape:
        """The dimensions of a tuple or list of them, or of ``R.shape([…])``."""
        if isinstance(node, ast.Call) and dotted(node.func) in ("R.shape", "R.ShapeExpr"):
            by_name = arguments(self.source, node, ("values",))
            node = by_name.get("values", node)
        string = None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            string, node = node, self._quoted(node, node.value, "is no shape: needs a tuple")
        if not isinstance(node, ast.Tuple | ast.List):
            message = f"`{ast.unparse(node)}` is no shape: needs a tuple"
            raise self.source.error(string or node, message)
        return tuple(self._extent(e, string) for e in node.elts)

    def _extent(self, node: ast.expr, string: ast.expr | None) -> Dim:
        dim = self._dim(node, string) if string else self.dim(node)
        if isinstance(dim, int) and dim < 0:
            raise self.source.error(string or node, f"the dimension is {dim}, needs 0 or more")
        return dim

    def dim(self, node: ast.expr) -> Dim:
        """The dimension of `node`, an expression or a string: ``n * 2``, ``"n * 2"``."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._dim(self._quoted(node, node.value, _NOT_A_DIM), node)
        return self._dim(node, None)

    def _quoted(self, node: ast.expr, text: str, otherwise: str) -> ast.expr:
        try:
            return parsed_expression(text.strip())
        except (SyntaxError, ValueError):
            raise self.source.error(node, f'"{text}" {otherwise}') from None

    def _dim(self, node: ast.expr, string: ast.expr | None) -> Dim:
        def leaf(part: ast.expr) -> Form:
            match part:
                case ast.Name(id=name):
                    if name not in self.symbols:
                        self._define(name, string, part)
                    return name
                case ast.Call(func=func, args=[inner], keywords=[]) if dotted(func) in _CASTS:
                    return read(inner, leaf)
                case ast.Call(func=func, args=[a, b], keywords=[]) if dotted(func) in _DIVISIONS:
                    return read(ast.BinOp(a, _DIVISIONS[dotted(func)], b), leaf)
                case _:
                    message = f"`{ast.unparse(part)}` {_NOT_A_DIM}"
                    raise self.source.error(string or part, message)

        form = read(node, leaf)
        try:
            return fold(form, _DIMS)
        except ZeroDivisionError:
            raise self.source.error(string or node, "a dimension is divided by 0") from None

    def _define(self, name: str, string: ast.expr | None, node: ast.expr) -> None:
        if name in self.variables:
            message = f"{name} is a variable, it cannot be a symbol"
            raise self.source.error(string or node, message)
        if self.defining and (self.bare or string is not None):
            self.symbols.add(name)
            return
        close = nearest(name, sorted(self.symbols))
        note = close or f"declare it: {name} = T.int64()"
        raise self.source.error(string or node, f"undefined symbol {name}", note)


_OF_A_VARIABLE = re.compile(r"\.(ty|struct_info)\b")
"""What a variable is, ``x.ty``: another variable may have the same name later."""

_CASTS = ("T.int64", "T.int32")

_DIVISIONS: Mapping[str, ast.operator] = {
    **dict.fromkeys(("T.FloorDiv", "T.floordiv"), ast.FloorDiv()),
    **dict.fromkeys(("T.FloorMod", "T.floormod"), ast.Mod()),
}


def _checked(divide: Callable[[Dim, Dim], Dim]) -> Callable[[Dim, Dim], Dim]:
    def checked(a: Dim, b: Dim) -> Dim:
        if b == 0:
            raise ZeroDivisionError
        return divide(a, b)

    return checked


_DIMS: Algebra[Dim] = replace(
    dims.ALGEBRA,
    operators={
        **dims.ALGEBRA.operators,
        "//": _checked(dims.floordiv),
        "%": _checked(dims.mod),
    },
)
"""Dimensions, of which none is divided by 0."""


_BARE = frozenset({"Tensor", "Shape", "Tuple", "Prim", "Object", "Callable"})
"""Annotations that older scripts write without ``R.``."""


def _without_device(node: ast.Call) -> ast.Call:
    """``R.Tensor(shape, dtype, vdevice, ndim)`` without its device: there is one."""
    device = node.args[2] if len(node.args) > 2 else None
    named = [k for k in node.keywords if k.arg == "vdevice"]
    if not named and not (isinstance(device, ast.Constant) and isinstance(device.value, str)):
        return node
    args = node.args if named else [*node.args[:2], *node.args[3:]]
    rest = [k for k in node.keywords if k.arg != "vdevice"]
    return ast.copy_location(ast.Call(node.func, args, rest), node)


def _names_a_dtype(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and (node.value in DTYPES or node.value in DTYPE_NAMES)


def _mentions_a_variable(info: StructInfo) -> bool:
    match info:
        case TensorStructInfo():
            return info.shape is not None and info.dims is None
        case TupleStructInfo(fields=fields):
            return any(map(_mentions_a_variable, fields))
        case FuncStructInfo(params=params, ret=ret):
            return any(map(_mentions_a_variable, (*(params or ()), ret)))
        case _:
            return False
