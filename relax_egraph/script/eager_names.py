"""Names in the annotations of a decorated function that have no value in Python.

Python evaluates decorators first, then annotations: so ``@R.function`` looks at the annotations
below it, and says what to write, where Python would only say that ``n`` is not defined.
"""

import __future__

import ast
import builtins
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import FrameType

from relax_egraph.errors import ScriptError
from relax_egraph.script.decorators import cached_source

_FIRST_LAZY = (3, 14)
"""The first version of Python that evaluates no annotation before it is asked for."""

_NOTE = (
    'write "{name}" in quotes, or {name} = T.int64() before, or '
    "`from __future__ import annotations` at the top of the file"
)


def check_annotations(frame: FrameType | None) -> None:
    """Raise `ScriptError` if the function decorated at `frame` has a name without a value."""
    if frame is None or sys.version_info >= _FIRST_LAZY:
        return
    code = frame.f_code
    if code.co_flags & __future__.annotations.compiler_flag:
        return
    text = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    known = {*dir(builtins), *frame.f_globals, *frame.f_locals}
    known |= {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for name in _names(text, code.co_filename, frame.f_lineno):
        if name.id not in known:
            source = cached_source(text, code.co_filename)
            message = f"{name.id} has no value in Python, which evaluates annotations"
            raise source.error(name, message, _NOTE.format(name=name.id))


def _names(text: str, file: str, line: int) -> Iterator[ast.Name]:
    """The names in annotations of the function that has a decorator on `line`."""
    for node in _functions(text, file):
        if not any(d.lineno <= line <= (d.end_lineno or d.lineno) for d in node.decorator_list):
            continue
        args = node.args
        annotated = [a.annotation for a in (*args.posonlyargs, *args.args)]
        for annotation in filter(None, (*annotated, node.returns)):
            yield from (n for n in ast.walk(annotation) if isinstance(n, ast.Name))


@lru_cache(8)
def _functions(text: str, file: str) -> tuple[ast.FunctionDef, ...]:
    try:
        tree = cached_source(text, file).tree
    except ScriptError:
        return ()
    return tuple(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
