"""Resolves outer names of a decorated function: numbers, arrays, other functions.

The syntax tree is rewritten before it is read: an expression of outer names only is evaluated by
Python and replaced by its value.
"""

import ast
import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.expr import Constant, Function
from relax_egraph.ir.module import BaseFunc
from relax_egraph.ir.syntax import parsed_expression
from relax_egraph.script.placeholders import Applied, Computed, Name, Symbol
from relax_egraph.script.source import Source
from relax_egraph.tir.stmt import PrimFunc

_WORD = re.compile(r"[A-Za-z_]\w*")
_ALLOWED = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "str", "sum", "tuple"})
"""Functions of Python that may be applied to outer values."""

_NOTHING = object()


class OuterNames(ast.NodeTransformer):
    """Rewrites the syntax of a definition; `values` are the outer names with their values.

    `spoken` are the objects of script names: the modules, the decorators.  Outer functions and
    symbols are collected in `functions` and `symbols`.  Raises `ScriptError`.
    """

    def __init__(
        self, source: Source, values: Mapping[str, object], spoken: Mapping[int, str]
    ) -> None:
        self.functions: dict[str, BaseFunc] = {}
        self.symbols: set[str] = set()
        self._source = source
        self._values = values
        self._spoken = spoken
        self._own: set[str] = set()
        self._constants: dict[int, Constant] = {}
        self._names: dict[int, str] = {}

    def function(self, node: ast.FunctionDef, own: Iterable[str] = ()) -> ast.FunctionDef:
        """A copy of `node` with outer names resolved; `own` are the names of the module."""
        self._own = {"_", "cls", "metadata", *own, *_own_names(node)}
        return self.visit(copy.deepcopy(node))

    def statement(self, node: ast.stmt, own: Iterable[str]) -> ast.stmt:
        """A copy of a statement of the module itself; `own` are the names of the module."""
        self._own = set(own)
        return self.visit(copy.deepcopy(node))

    def visit(self, node: ast.AST) -> Any:
        """`node`, or its value."""
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
            value = self._value(node)
            literal = None if value is _NOTHING else self._written(node, value)
            if literal is not None:
                for part in ast.walk(literal):
                    ast.copy_location(part, node)
                return literal
        return self.generic_visit(node)

    def _value(self, node: ast.expr) -> object:
        """The value of an expression of outer names."""
        if isinstance(node, ast.Name):
            return _NOTHING if node.id in self._own else self._values.get(node.id, _NOTHING)
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        outer = [n for n in names if n not in self._own and n in self._values]
        if not outer or any(n not in outer and n not in _ALLOWED for n in names):
            return _NOTHING
        if any(self._is_script(self._values[n]) for n in outer):
            return _NOTHING
        code = compile(ast.Expression(node), self._source.filename, "eval")
        try:
            return eval(code, dict(self._values))
        except Exception as problem:
            what = f"{type(problem).__name__}: {problem}"
            raise self._source.error(node, f"`{ast.unparse(node)}`: {what}") from problem

    def _is_script(self, value: object) -> bool:
        kinds = Name | Applied | Symbol | TypeVar | Function | PrimFunc
        return id(value) in self._spoken or isinstance(value, kinds)

    def _written(self, node: ast.expr, value: object) -> ast.expr | None:
        """Syntax for `value`; ``None`` if there is none."""
        if id(value) in self._spoken:
            return parsed_expression(self._spoken[id(value)])
        match value:
            case Name(name=name):
                return parsed_expression(name)
            case Applied(name=name):
                message = f"`{ast.unparse(node)}` is an annotation that stands elsewhere"
                raise self._source.error(node, message, f"write {name}(…) in place")
            case Symbol() | TypeVar():
                return ast.Name(self._symbol(node, value), ast.Load())
            case Function() | PrimFunc():
                return ast.Name(self._function(node, value), ast.Load())
            case np.ndarray():
                return ast.Constant(self._constant(node, value))  # pyright: ignore[reportArgumentType]  # a constant of ours
            case np.dtype():
                return ast.Constant(value.name)
            case type() if issubclass(value, np.generic):
                return ast.Constant(np.dtype(value).name)
            case _:
                return _literal(value)

    def _symbol(self, node: ast.expr, value: object) -> str:
        if not isinstance(node, ast.Name) or isinstance(value, Computed):
            message = f"`{ast.unparse(node)}` is computed of symbols: write it in place"
            raise self._source.error(node, message)
        name = self._names.setdefault(id(value), node.id)
        self.symbols.add(name)
        return name

    def _function(self, node: ast.expr, value: BaseFunc) -> str:
        if not isinstance(node, ast.Name):
            message = f"`{ast.unparse(node)}` is a function, give it a name first"
            raise self._source.error(node, message)
        name = self._names.setdefault(id(value), node.id)
        if self.functions.setdefault(name, value) is not value:
            raise self._source.error(node, f"two functions are named {name}")
        return name

    def _constant(self, node: ast.expr, value: np.ndarray[Any, Any]) -> Constant:
        if value.dtype.name not in DTYPES:
            message = f"`{ast.unparse(node)}` is an array of {value.dtype}"
            raise self._source.error(node, f"{message}, needs one of {', '.join(DTYPES)}")
        return self._constants.setdefault(id(value), Constant(value))


def _own_names(function: ast.FunctionDef) -> set[str]:
    """The names that a function defines itself, also in a string of its signature."""
    own: set[str] = set()
    for node in ast.walk(function):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.arg(arg=name)
            ):
                own.add(name)
            case _:
                pass
    args = function.args
    annotations = [function.returns, *(a.annotation for a in (*args.posonlyargs, *args.args))]
    strings = (n for a in annotations if a for n in ast.walk(a) if isinstance(n, ast.Constant))
    for string in strings:
        own.update(_WORD.findall(string.value) if isinstance(string.value, str) else ())
    return own


def _literal(value: object) -> ast.expr | None:
    match value:
        case np.generic():
            return _literal(value.item())
        case None | bool() | int() | float() | str():
            return ast.Constant(value)
        case tuple() | list():
            parts = list(map(_literal, cast("tuple[object, ...]", value)))
            known = [p for p in parts if p is not None]
            return ast.Tuple(known, ast.Load()) if len(known) == len(parts) else None
        case _:
            return None
