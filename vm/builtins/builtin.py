"""The definition of a builtin: its operands, and errors about them."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.vm.matching import describe

Packed: TypeAlias = Callable[..., Any]

_NOUNS = {int: "an integer", str: "a string"}


@dataclass(frozen=True, slots=True)
class Builtin:
    """The packed function ``vm.builtin.<name>``.

    Its first operands, named `values`, are run-time values; the rest are `constants`, with their
    types, from which `make` builds the function to run.  The last name of either may begin with
    ``*``: any number.
    """

    name: str
    values: tuple[str, ...]
    constants: tuple[tuple[str, Any], ...]
    make: Callable[..., Packed]
    meaning: str

    @property
    def dynamic(self) -> int:
        """The most operands that are run-time values."""
        return sys.maxsize if self.values and self.values[-1][0] == "*" else len(self.values)

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of all operands."""
        return (*self.values, *(name for name, _ in self.constants))

    def check_count(self, count: int) -> None:
        """Raise `ExecutableError` unless the builtin takes `count` operands."""
        least = sum(name[0] != "*" for name in self.operands)
        most = len(self.operands) if least == len(self.operands) else sys.maxsize
        if not least <= count <= most:
            noun = "operand" if least == 1 else "operands"
            named = f" ({', '.join(self.operands)})" if self.operands else ""
            least_of = "" if least == most else "at least "
            raise ExecutableError(f"takes {least_of}{least} {noun}{named}, got {count}")

    def bind(self, *constants: Any) -> Packed:
        """The function of run-time values; raises `ExecutableError` for wrong constants."""
        for place, value in enumerate(constants):
            name, kind = self.constants[min(place, len(self.constants) - 1)]
            if kind in _NOUNS and type(value) is not kind:
                raise ExecutableError(f"operand {name} is {describe(value)}, needs {_NOUNS[kind]}")
        return self.make(*constants)


def of_values(function: Packed) -> Builtin:
    """The builtin `function`, whose operands are all run-time values."""
    parameters = inspect.signature(function).parameters.values()
    names = tuple(f"{'*' * (p.kind is p.VAR_POSITIONAL)}{p.name}" for p in parameters)
    return Builtin(_name(function), names, (), lambda: function, _meaning(function))


def bound(make: Callable[..., Packed], *values: str) -> Builtin:
    """The builtin that `make` builds from its constant operands, which follow the `values`."""
    parameters = inspect.signature(make).parameters.values()
    constants = tuple(
        (f"{'*' * (p.kind is p.VAR_POSITIONAL)}{p.name}", p.annotation) for p in parameters
    )
    return Builtin(_name(make), values, constants, make, _meaning(make))


def wrong(name: str, operand: str, value: Any, needs: str) -> RunError:
    """The error for an operand of the wrong kind of ``vm.builtin.<name>``."""
    return RunError(f"vm.builtin.{name}: operand {operand} is {describe(value)}, needs {needs}")


def _name(function: Packed) -> str:
    return function.__name__.rstrip("_")


def _meaning(function: Packed) -> str:
    return (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
