"""Scripts in Python files: ``@I.ir_module``, ``@R.function``, ``@T.prim_func``.

A decorator parses the source of the decorated function or class; Python never runs the body.  A
name that the body does not define has its value in Python at that point: a number, a numpy array
for a constant, a decorated function for another function of the module.
"""

import ast
import inspect
import linecache
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from types import FrameType, FunctionType
from typing import Any, TypeVar

from relax_egraph.errors import ScriptError, Span
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.script.outer_names import OuterNames
from relax_egraph.script.parser import read_class, read_function
from relax_egraph.script.source import Source, dotted

Node = TypeVar("Node", ast.ClassDef, ast.FunctionDef)

SPOKEN: dict[int, str] = {}
"""The objects of script names, by identity: the modules R, T and I, and decorators."""


def module_of(cls: type, frame: FrameType | None) -> IRModule:
    """The module of the class `cls`, which is decorated in `frame`."""
    file, line = _file(frame), frame.f_lineno if frame else 1
    source = _source_of(file, line, cls.__name__, frame)
    node = _definition(source, ast.ClassDef, cls.__name__, line)
    methods = [m for m in vars(cls).values() if isinstance(m, FunctionType)]
    around = OuterNames(source, _values(frame, *methods), SPOKEN)
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    own = {node.name, *(f.name for f in functions), *_declared(node)}
    body = [
        around.function(n, own) if isinstance(n, ast.FunctionDef) else around.statement(n, own)
        for n in node.body
    ]
    plain = ast.ClassDef(node.name, [], [], body, [ast.Name("ir_module", ast.Load())])
    resolved = ast.copy_location(plain, node)
    return read_class(source, resolved, around.symbols, around.functions)


def decorated(definition: Callable[..., Any] | None, kind: str, frame: FrameType | None) -> Any:
    """The result of the decorator `kind` for `definition` in `frame`.

    A decorator with options is called before there is a definition.  Methods are left to the class.
    """
    if definition is None:

        def decorate(later: Callable[..., Any]) -> Any:
            here = inspect.currentframe()
            return decorated(later, kind, here and here.f_back)

        return decorate
    if not isinstance(definition, FunctionType):
        raise TypeError(f"@{kind} decorates a function, got {definition!r}")
    head = definition.__qualname__.rpartition(".")[0]
    if head and not head.endswith("<locals>"):
        return definition
    return _function_of(definition, kind, frame)


def _function_of(function: FunctionType, kind: str, frame: FrameType | None) -> BaseFunc:
    code = function.__code__
    name, line = function.__name__, code.co_firstlineno
    source = _source_of(code.co_filename, line, name, frame)
    node = _definition(source, ast.FunctionDef, name, line)
    around = OuterNames(source, _values(frame, function), SPOKEN)
    resolved = around.function(node, {name})
    resolved.decorator_list = [d for d in resolved.decorator_list if _is(d, kind)]
    if around.functions:
        other = next(iter(around.functions))
        message = f"{name} refers to the function {other}, which is no part of it"
        raise source.error(node, message, "put both into a class with @I.ir_module")
    return read_function(source, resolved, around.symbols)


def _is(decorator: ast.expr, kind: str) -> bool:
    return dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) == kind


def _declared(node: ast.ClassDef) -> set[str]:
    """The names that the class itself defines: symbols of the module."""
    targets = [t for s in node.body if isinstance(s, ast.Assign) for t in s.targets]
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def _values(frame: FrameType | None, *functions: FunctionType) -> Mapping[str, object]:
    """The names around a definition: of its file and of the enclosing functions."""
    values: dict[str, object] = {}
    for function in functions:
        values |= function.__globals__
    if frame is not None:
        values |= {**frame.f_globals, **frame.f_locals}
    for function in functions:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            with suppress(ValueError):  # an empty cell: a name with a later value, as the class
                values[name] = cell.cell_contents
    return values


def _file(frame: FrameType | None) -> str:
    return frame.f_code.co_filename if frame else "<unknown>"


def _source_of(file: str, line: int, name: str, frame: FrameType | None) -> Source:
    """The text of the whole file, so that errors point into it."""
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file, frame.f_globals if frame else None))
    if not text:
        message = f"the source of {name} is not to be had, a script is read from its source"
        note = "put it into a file, or give its text to parse"
        raise ScriptError(Span(file, line, 1), message, "", note)
    return cached_source(text, file)


@lru_cache(8)
def cached_source(text: str, file: str) -> Source:
    """The text of a file, which is parsed once."""
    return Source(text, file)


def _definition(source: Source, kind: type[Node], name: str, line: int) -> Node:
    """The definition of `name` that has a decorator on `line`."""
    named = [n for n in ast.walk(source.tree) if isinstance(n, kind) and n.name == name]
    for node in named:
        lines = [(d.lineno, d.end_lineno or d.lineno) for d in node.decorator_list]
        if any(first <= line <= last for first, last in lines):
            return node
    message = f"the source of {name} is not to be had: its file was changed"
    raise ScriptError(Span(source.filename, line, 1), message, "")
