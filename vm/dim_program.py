"""Dimensions computed at run time, from texts that are compiled once.

A text is the arithmetic of Python over integers and slots of the shape heap, ``@0 * 4``,
``min(@0, @1) // 2``; nothing else reads, so that a text out of a file is safe to compile.
"""

import ast
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from relax_egraph.errors import ExecutableError, RunError

Heap: TypeAlias = list[int]
"""The dimensions of one call of a function; a slot is written before it is read."""

MAX_TEXT = 10_000
"""Characters of one text at most."""

_SLOT = re.compile(r"@(\d+)", re.ASCII)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_CALLS = {"min": min, "max": max}


def compile_dim(text: str) -> Callable[[Heap], int]:
    """The function that evaluates `text`; raises `ExecutableError` if it is no dimension.

    The function raises `RunError` where the text divides by zero.
    """
    evaluate: Callable[[Heap], int] = _compile(_checked(text))

    def dim(heap: Heap) -> int:
        try:
            return evaluate(heap)
        except ZeroDivisionError:
            written = _SLOT.sub(lambda m: str(heap[int(m[1])]), text)
            raise RunError(f"the dimension {written} divides by zero") from None

    return dim


def compile_shape(dims: tuple[str, ...]) -> Callable[[Heap], tuple[int, ...]]:
    """The function that evaluates all of `dims`."""
    return _compile(f"({''.join(f'({_checked(d)}),' for d in dims)})")


def parse_dim(text: str) -> ast.expr:
    """`text` as a tree of Python: integers, ``heap[3]``, ``-``, ``+ - * // %``, ``min``, ``max``.

    Raises `ExecutableError` if it is no dimension.
    """
    return ast.parse(_checked(text), mode="eval").body


def slot_of(text: str) -> int | None:
    """``3`` of ``"@3"``; ``None`` of anything else."""
    found = _SLOT.fullmatch(text)
    return int(found[1]) if found else None


def _checked(text: str) -> str:
    """`text` as Python over ``heap``, every node of it looked at."""
    source = _SLOT.sub(r"heap[\1]", text)
    try:
        if len(source) <= MAX_TEXT and _is_dim(ast.parse(source, mode="eval").body):
            return source
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise ExecutableError(f"section code: `{text[:60]}` is no dimension")


def _compile(source: str) -> Callable[[Heap], Any]:
    try:
        return eval(f"lambda heap: ({source})", {"__builtins__": {}, **_CALLS})
    except (SyntaxError, RecursionError, MemoryError):  # a comment, or too deep once wrapped
        raise ExecutableError(f"section code: `{source[:60]}` is no dimension") from None


def _is_dim(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Subscript(value=ast.Name(id="heap"), slice=ast.Constant(value=slot)):
            return type(slot) is int
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_dim(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return isinstance(op, _OPERATORS) and _is_dim(left) and _is_dim(right)
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as args, keywords=[]):
            return name in _CALLS and all(map(_is_dim, args))
        case _:
            return False
