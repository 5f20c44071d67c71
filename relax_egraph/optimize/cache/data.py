"""Saturated views and programs as what JSON can hold, and back.

Equal struct infos are written once, and stand by number.  A dimension is a number, or the text of
an expression.  What is read is checked: anything that was not written here, of a view with as
many leaves, raises `ValueError`.
"""

from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Data: TypeAlias = Any
"""Lists, dictionaries, strings, numbers, ``True``, ``False`` and ``None``."""
