"""Reads bindings: with an annotation, by a run-time check, of several variables at once."""

import ast
from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir.agreement import bare_symbols, relation
from relax_egraph.ir.expr import Call, Expr, MatchCast, TupleGetItem, VarBinding
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.walk import is_leaf
from relax_egraph.script.expressions import Expressions
from relax_egraph.script.source import arguments, dotted

_CASTS = frozenset({"R.match_cast", "R.match_shape"})


class Bindings:
    """Reads bindings into the open block of the scope of `expressions`; raises `ScriptError`."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        self._scope = expressions.scope
        self._source = expressions.source

    def bind(self, name: str, node: ast.expr, annotation: ast.expr | None = None) -> None:
        """``name: annotation = node``."""
        annotations = self._scope.annotations
        if isinstance(node, ast.Call) and _is_cast(node.func):
            value, cast, refusal = self._expressions.cast(node)
            declared = annotation and annotations.struct_info(annotation)
            info = self.checked(annotation, declared, cast, name)
            var = self._scope.declare(name, info)
            self._cast(MatchCast(var, value, cast, self._source.span(node), refusal))
            return
        declared = annotation and annotations.struct_info(annotation)
        value = self._expressions.value(node, declared)
        info = value.struct_info
        if declared is not None:
            info = self.checked(annotation, declared, info, name)
            if isinstance(value, Call) and not isinstance(value.op, Op):
                value = replace(value, struct_info=info)
        self._bind(name, value, info)

    def unpack(self, target: ast.Tuple | ast.List, node: ast.expr) -> None:
        """``a, b = node``: the fields of a tuple, or the extents of a shape as new symbols."""
        names = [self._name(e) for e in target.elts]
        if isinstance(node, ast.Tuple) and len(node.elts) == len(names):
            leaves = list(map(self._expressions.leaf, node.elts))
            for name, leaf in zip(names, leaves, strict=True):
                self._bind(name, leaf, leaf.struct_info)
            return
        if isinstance(node, ast.Call) and dotted(node.func) == "R.match_shape":
            by_name = arguments(self._source, node, ("value", "pattern"))
            node = node if "pattern" in by_name else by_name.get("value", node)
        value = self._expressions.value(node)
        info = value.struct_info
        if isinstance(info, ShapeStructInfo):
            self._extents(names, node, value)
            return
        fields = info.fields if isinstance(info, TupleStructInfo) else None
        if not isinstance(info, TupleStructInfo | ObjectStructInfo):
            written = ast.unparse(node)
            raise self._source.error(node, f"`{written}` is {info}, needs a tuple or a shape")
        if fields is not None and len(fields) != len(names):
            message = f"`{ast.unparse(node)}` has {len(fields)} fields for {len(names)} names"
            raise self._source.error(target, message)
        whole = value if is_leaf(value) else self._scope.emit(value)
        for number, name in enumerate(names):
            field = TupleGetItem(whole, number)
            self._bind(name, field, field.struct_info)

    def checked(
        self, node: ast.expr | None, declared: StructInfo | None, known: StructInfo, what: str
    ) -> StructInfo:
        """The declared struct info; raises `ScriptError` if that of the value contradicts it."""
        if node is None or declared is None or declared == known:
            return known
        match = relation(declared, known)
        if match == "contradiction":
            raise self._source.error(node, f"{what} is declared {declared}, but it is {known}")
        stronger = match == "implied" and not isinstance(known, ObjectStructInfo)
        return known if stronger and self._scope.older else declared

    def _bind(self, name: str, value: Expr, info: StructInfo) -> None:
        self._scope.bindings.append(VarBinding(self._scope.declare(name, info), value))

    def _extents(self, names: Sequence[str], node: ast.expr, value: Expr) -> None:
        """``n, m = x.shape``: a run-time check that declares the symbols."""
        pattern = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        for inner in pattern.elts:
            ast.copy_location(inner, node)
        shape = self._scope.annotations.pattern().shape(pattern)
        whole = value if is_leaf(value) else self._scope.emit(value)
        info = ShapeStructInfo(shape, len(shape))
        if relation(info, whole.struct_info) == "contradiction":
            message = (
                f"`{ast.unparse(node)}` is {whole.struct_info}, it is not of {len(names)} axes"
            )
            raise self._source.error(node, message)
        var = self._scope.declare(self._scope.fresh(), info)
        self._cast(MatchCast(var, whole, info, self._source.span(node)))

    def _cast(self, binding: MatchCast) -> None:
        self._scope.bindings.append(binding)
        self._scope.bound |= bare_symbols(binding.struct_info)

    def _name(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self._source.error(node, f"`{ast.unparse(node)}` is no variable")
        return node.id


def _is_cast(callee: ast.expr) -> bool:
    return isinstance(callee, ast.Attribute) and dotted(callee) in _CASTS
