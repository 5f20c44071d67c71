"""Strict JSON from files: refuses extensions that Python's reader accepts."""

import json
from typing import Any, NoReturn

from relax_egraph.errors import ExecutableError


def json_table(section: str, data: bytes) -> Any:
    """The value of `data`; raises `ExecutableError`.

    It must be standard JSON in UTF-8: no ``NaN``, no ``Infinity``, no repeated name in an object,
    no lone surrogate in a string.
    """
    try:
        value = json.loads(
            data.decode(), parse_constant=_refuse_number, object_pairs_hook=_each_name_once
        )
    except (ValueError, RecursionError) as error:
        raise ExecutableError(f"section {section}: {error}") from None
    if b"\\u" in data and _has_surrogate(value):
        raise ExecutableError(f"section {section}: a text has half of a surrogate pair")
    return value


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("an object has a name twice")
    return table


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
