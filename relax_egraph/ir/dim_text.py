"""The text of dimensions in scripts: the arithmetic of Python, with min and max as calls."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import sympy

from relax_egraph.ir.braces import is_braced
from relax_egraph.ir.dim_form import form
from relax_egraph.ir.form import Algebra, Form, fold

_MEMO = 1 << 16


def text(dim: int | sympy.Expr) -> str:
    """`dim` as a script writes it: ``n * 4``, ``n // 2``, ``n % 8``, ``min(n, m)``."""
    if isinstance(dim, int):
        return str(dim)
    return f"{{{_whole_text(dim)}}}" if is_braced() else _whole_text(dim)


@lru_cache(_MEMO)
def _whole_text(dim: sympy.Expr) -> str:
    return written(form(dim))


_SUM, _NEGATIVE, _TERM, _ATOM = range(4)
_Level: TypeAlias = int
"""How tightly the outermost operator of a text binds."""


@dataclass(frozen=True, slots=True)
class _Written:
    text: str
    level: _Level = _ATOM

    def within(self, level: _Level) -> str:
        """The text, in parentheses where it binds less than `level`."""
        return self.text if self.level >= level else f"({self.text})"


def written(tree: Form) -> str:
    """The text of a form, with few parentheses."""
    return fold(tree, _TEXT).text


def _infix(sign: str, level: _Level, right: _Level) -> Callable[[_Written, _Written], _Written]:
    return lambda a, b: _Written(f"{a.within(level)} {sign} {b.within(right)}", level)


def _call(name: str) -> Callable[..., _Written]:
    return lambda *operands: _Written(f"{name}({', '.join(a.text for a in operands)})")


def _negative(a: _Written) -> _Written:
    return _Written(f"-{a.within(_ATOM)}", _NEGATIVE)


def _product(first: _Written, *others: _Written) -> _Written:
    """``(n + 1) * m``; a sign in front of the first factor needs no parentheses."""
    level = _NEGATIVE if first.level == _NEGATIVE else _TERM
    begin = first.text if level == _NEGATIVE else first.within(_ATOM)
    return _Written(" * ".join((begin, *(a.within(_ATOM) for a in others))), level)


_TEXT = Algebra(
    lambda value: _Written(str(value), _ATOM if value >= 0 else _NEGATIVE),
    _Written,
    {
        "neg": _negative,
        "+": _infix("+", _SUM, _TERM),
        "-": _infix("-", _SUM, _TERM),
        "*": _product,
        "//": _infix("//", _TERM, _ATOM),
        "%": _infix("%", _TERM, _ATOM),
        "min": _call("min"),
        "max": _call("max"),
    },
)
