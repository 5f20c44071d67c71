"""Conditions, messages and failures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir.message import message
from relax_egraph.vm.builtins.builtin import Builtin, Packed, bound, of_values, wrong
from relax_egraph.vm.matching import describe


def read_if_cond(x: Any) -> bool:
    """The value of a boolean scalar, a tensor or one of the host."""
    if isinstance(x, bool | int | np.bool_):
        return bool(x)
    if not isinstance(x, np.ndarray) or x.ndim or x.dtype != np.bool_:
        raise RunError(f'the condition of an if is {describe(x)}, needs R.Tensor((), "bool")')
    return bool(x)


def print_(format: Any, *values: Any) -> None:
    """Print `format` with its ``{}`` replaced by the values; if it is empty, the values alone."""
    print(_message("print", format, values))


def assert_(condition: Any, format: Any, *values: Any) -> None:
    """Fail with a message, formatted as by `print`, unless the boolean `condition` is true."""
    if isinstance(condition, np.ndarray) and not condition.ndim and condition.dtype == np.bool_:
        condition = bool(condition)
    if type(condition) is not bool:
        raise wrong("assert", "condition", condition, 'R.Tensor((), "bool")')
    text = _message("assert", format, values)
    if not condition:
        raise RunError(f"assertion failed: {text}" if text else "assertion failed")


def fatal(message: str) -> Packed:
    """Fail with `message`, where no case of the code matches."""

    def fail() -> None:
        raise RunError(message)

    return fail


def _message(name: str, format: Any, values: Sequence[Any]) -> str:
    if type(format) is not str:
        raise wrong(name, "format", format, "a string")
    try:
        return message(format, values)
    except ValueError as error:
        raise RunError(f"vm.builtin.{name}: {error}") from None


CONTROL: tuple[Builtin, ...] = (
    of_values(read_if_cond),
    of_values(print_),
    of_values(assert_),
    bound(fatal),
)
