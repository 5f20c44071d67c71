"""Python's parser, entered by one thread at a time.

CPython keeps the depth of the syntax tree under construction in one place for all threads, and
fails where two threads build trees at once (python/cpython#106905).
"""

import ast
from threading import RLock

from relax_egraph.base.forks import free_in_forks

_LOCK = free_in_forks(RLock())


def parsed(text: str) -> ast.Module:
    """The tree of a whole `text`; raises as ``ast.parse`` does."""
    with _LOCK:
        return ast.parse(text)


def parsed_expression(text: str) -> ast.expr:
    """The tree of one expression; raises as ``ast.parse`` does."""
    with _LOCK:
        return ast.parse(text, mode="eval").body
