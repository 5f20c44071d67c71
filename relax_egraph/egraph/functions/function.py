"""Engine functions: pure Python functions that rules call, with sorts from annotations.

    @function
    def inverse_of(permutation: Axes) -> Axes:
        '''The permutation that undoes `permutation`.'''
        return tuple(permutation.index(k) for k in range(len(permutation)))

A rule reads it as a fact, ``(= q (inverse-of p))``; it is computed once for each distinct argument.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import sympy

from relax_egraph.base import by_value
from relax_egraph.errors import SaturationError
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.ir.symbol_ranges import memoised

Axes: TypeAlias = tuple[int, ...]
"""The Python type of sort ``Axes``."""

F = TypeVar("F", bound=Callable[..., Any])

_SORTS: Mapping[Any, str] = {
    int: "i64",
    float: "f64",
    str: "String",
    bool: "bool",
    Axes: "Axes",
    tuple[float, ...]: "Floats",
    Dim: "Dim",
    Shape: "Shape",
}
"""The sort of each type that an argument or a result may have."""


@dataclass(frozen=True, slots=True)
class Function:
    """A pure function; `params` are names and sorts.

    It has no value for arguments for which `compute` returns ``None``: a premise with such a call
    does not hold.  `code` is the pickled `compute` for other processes; it is empty for a function
    of the engine.
    """

    name: str
    params: tuple[tuple[str, str], ...]
    result: str
    meaning: str
    compute: Callable[..., Any] = field(compare=False)
    code: bytes = b""

    def value(self, args: tuple[Any, ...]) -> Any:
        """The value for `args`, cached under the current assumptions; ``None`` if there is none.

        Raises `SaturationError` if the function fails, or returns a value of another sort.
        """
        return _value(self, args)

    def twice(self, args: tuple[Any, ...]) -> Any:
        """The value for `args`, computed two times; raises `SaturationError` if they differ."""
        first, second = _computed(self, args), _computed(self, args)
        if first != second and not (first != first and second != second):
            call = _shown(self, args)
            raise SaturationError(f"{call} is not pure: it returns {first!r}, then {second!r}")
        return first

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a user's function by value, as a worker does not import the user's script."""
        return _received, (self.name, self.params, self.result, self.meaning, self.code)


FUNCTIONS: dict[str, Function] = {}
"""The functions that are declared in this process, by their names in rules."""


def engine_function(compute: F) -> F:
    """Declare `compute` as a function of the engine."""
    declared = declaration_of(compute)
    FUNCTIONS[declared.name] = declared
    return compute


def function(compute: F) -> F:
    """Declare `compute` as a function for rules; in its name, ``-`` replaces ``_``.

    Sorts follow from annotations: ``int``, ``float``, ``str``, ``bool``, `Axes`, `Dim`, `Shape`.
    Raises ``TypeError`` for others, and ``ValueError`` for the name of a function of the engine.
    """
    declared = declaration_of(compute, by_value.dumped(compute))
    if is_of_engine(declared.name):
        raise ValueError(f"{declared.name} is a function of the engine; choose another name")
    FUNCTIONS[declared.name] = declared
    return compute


def is_of_engine(name: str) -> bool:
    """Whether `name` belongs to a function of the engine."""
    return name in FUNCTIONS and not FUNCTIONS[name].code


def declaration_of(compute: Callable[..., Any], code: bytes = b"") -> Function:
    """The function for `compute`; raises ``TypeError`` if an annotation has no sort."""
    name = str(getattr(compute, "__name__", "")).replace("_", "-")
    hints = get_type_hints(compute)
    names = tuple(inspect.signature(compute).parameters)
    missing = [n for n in (*names, "return") if n not in hints]
    if missing:
        raise TypeError(f"{name}: {', '.join(missing)} has no annotation, and so no sort")
    sorts = {n: _SORTS.get(hint) for n, hint in hints.items() if n != "return"}
    result = _SORTS.get(_without_none(hints["return"]))
    wrong = [n for n, sort in (*sorts.items(), ("return", result)) if sort is None]
    if wrong:
        known = "int, float, str, bool, tuple[int, ...], tuple[float, ...], Dim and Shape"
        raise TypeError(f"{name}: the annotation of {wrong[0]} is no sort; those are {known}")
    meaning = (inspect.getdoc(compute) or "a function of the user").partition("\n")[0].rstrip(".")
    params = tuple((n.replace("_", "-"), str(sorts[n])) for n in names)
    return Function(name, params, str(result), meaning, compute, code)


def called(text: str) -> tuple[Function, ...]:
    """The functions of users that the rule file `text` calls."""
    return tuple(f for f in FUNCTIONS.values() if f.code and f"({f.name} " in text)


@memoised
def _value(function: Function, args: tuple[Any, ...]) -> Any:
    return _computed(function, args)


def _computed(function: Function, args: tuple[Any, ...]) -> Any:
    try:
        value = function.compute(*args)
    except Exception as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise SaturationError(f"{_shown(function, args)} fails: {what}") from problem
    if value is not None and not _is_of(function.result, value):
        call = _shown(function, args)
        raise SaturationError(f"{call} returns {value!r}, which is not of sort {function.result}")
    return value


def _shown(function: Function, args: tuple[Any, ...]) -> str:
    return f"function {function.name}({', '.join(map(repr, args))})"


def _received(
    name: str, params: tuple[tuple[str, str], ...], result: str, meaning: str, code: bytes
) -> Function:
    known = FUNCTIONS.get(name)
    if known is None or known.code != code:
        compute = by_value.loaded(code)
        known = FUNCTIONS[name] = Function(name, params, result, meaning, compute, code)
    return known


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    some = [part for part in get_args(hint) if part is not type(None)]
    return Union[tuple(some)]  # noqa: UP007 - of types that are values


def _is_of(sort: str, value: Any) -> bool:
    match sort:
        case "i64":
            return isinstance(value, int) and not isinstance(value, bool)
        case "f64":
            return isinstance(value, float)
        case "String":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "Dim":
            return isinstance(value, int | sympy.Expr) and not isinstance(value, bool)
        case _:
            part = {"Axes": "i64", "Floats": "f64", "Shape": "Dim"}[sort]
            return isinstance(value, tuple) and all(_is_of(part, v) for v in value)
