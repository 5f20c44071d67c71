"""What the parameters of public functions take; a wrong argument is refused at the call.

    @takes(module=MODULE, tolerance=optional(TOLERANCE))
    def optimize(module, *, tolerance=None): ...

    optimize(module, tolerance="high")
    TypeError: tolerance is 'high', needs a share from 0 to below 1, such as 0.02, or None

A value of another type is a ``TypeError``, one out of range a ``ValueError``.  Both say the
parameter, its value and what is needed, before any work is done.
"""

import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from relax_egraph.base.signatures import readable
from relax_egraph.errors import nearest

P = ParamSpec("P")
R = TypeVar("R")

Test: TypeAlias = Callable[[Any], bool]


def _always(_: Any) -> bool:
    return True


def _no_parts(_: str, value: Any) -> "Iterable[tuple[str, Any, Kind]]":
    return ()


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a parameter takes; `needs` says in words which these are.

    `parts` are the values within one, by its name, each with a name and a kind of its own.
    """

    needs: str
    has_type: Test
    in_range: Test = _always
    parts: "Callable[[str, Any], Iterable[tuple[str, Any, Kind]]]" = _no_parts

    def check(self, name: str, value: Any) -> None:
        """Raise ``TypeError`` or ``ValueError`` unless parameter `name` takes `value`."""
        if not self.has_type(value):
            raise TypeError(f"{name} is {shown(value)}, needs {self.needs}")
        if not self.in_range(value):
            raise ValueError(f"{name} is {shown(value)}, needs {self.needs}")
        for part, within, kind in self.parts(name, value):
            kind.check(part, within)


ANYTHING = Kind("anything", _always)


def instance(needs: str, *types: type) -> Kind:
    """Values of `types`."""
    return Kind(needs, lambda value: isinstance(value, types))


def optional(kind: Kind) -> Kind:
    """Values of `kind`, and ``None``."""
    return Kind(
        f"{kind.needs}, or None",
        lambda value: value is None or kind.has_type(value),
        lambda value: value is None or kind.in_range(value),
        lambda name, value: () if value is None else kind.parts(name, value),
    )


def integer(needs: str, least: float = -math.inf, most: float = math.inf) -> Kind:
    """Integers from `least` to `most`; those of numpy, too."""
    return Kind(needs, _is_integer, lambda value: least <= value <= most)


def number(needs: str, in_range: Test) -> Kind:
    """Numbers; truth values are none."""
    return Kind(needs, lambda value: isinstance(value, Real) and not is_flag(value), in_range)


def choice(*values: str) -> Kind:
    """One of some texts."""
    return Kind(f"one of {', '.join(values)}", lambda v: isinstance(v, str), values.__contains__)


def collection(needs: str, of: Kind = ANYTHING, only: type = object) -> Kind:
    """Lists, tuples, sets and the like, or of these `only` one; a text is none, nor a mapping."""

    def parts(name: str, value: Collection[Any]) -> Iterator[tuple[str, Any, Kind]]:
        return ((f"{name}[{place}]", part, of) for place, part in enumerate(value))

    return Kind(needs, lambda v: is_collection(v) and isinstance(v, only), parts=parts)


def mapping(needs: str, of: Kind = ANYTHING) -> Kind:
    """Mappings from names to values of a kind."""

    def parts(name: str, value: Mapping[Any, Any]) -> Iterator[tuple[str, Any, Kind]]:
        for key, part in value.items():
            yield f"a key of {name}", key, NAME
            yield f"{name}[{shown(key)}]", part, of

    return Kind(needs, lambda value: isinstance(value, Mapping), parts=parts)


def function(needs: str) -> Kind:
    """Whatever can be called."""
    return Kind(needs, callable)


def is_flag(value: object) -> bool:
    """Whether `value` is a truth value."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # numpy's, too


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not is_flag(value)


def is_collection(value: object) -> bool:
    """Whether `value` has several elements, and is neither a text nor a mapping."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


FLAG = Kind("True or False", is_flag)
NAME = instance("a name", str)
NAMES = collection('a sequence of names, such as ["fma"]', NAME)
TEXT = instance("a text", str)
PATH = instance("a path", str, os.PathLike)
SEED = integer("a seed, 0 or more", 0)
SIZE = integer("a size, 0 or more", 0)
SIZES = mapping("sizes of symbols, such as {'n': 64}", SIZE)
SECONDS = number("a number of seconds, 0 or more", lambda value: value >= 0)
COUNT = integer("an integer, 1 or more", 1)
MOST_THREADS = 1024
THREADS = integer("a number of threads, from 1 to 1024", 1, MOST_THREADS)
NOT_NEGATIVE = number("a finite number, 0 or more", lambda value: 0 <= value < math.inf)
POSITIVE = number("a positive number", lambda value: 0 < value < math.inf)


def check(kinds: Mapping[str, Kind], values: Mapping[str, Any]) -> None:
    """Check each of `values` that one of `kinds` is for."""
    for name, kind in kinds.items():
        if name in values:
            kind.check(name, values[name])


def check_fields(value: object, kinds: Mapping[str, Kind]) -> None:
    """Check those fields of a dataclass that `kinds` are for."""
    check(kinds, {name: getattr(value, name) for name in kinds})


def takes(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have the decorated function check its arguments; every parameter has a kind but ``self``.

    Kinds that are of no parameter are of the keywords that ``**`` collects; a keyword without a
    kind is refused with the one that is near.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        parameters = signature.parameters.values()
        (extra,) = [p.name for p in parameters if p.kind is p.VAR_KEYWORD] or [""]
        several = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
        plain = {p.name for p in parameters} - {"self", extra}
        if plain - kinds.keys() or (kinds.keys() - plain and not extra):
            raise TypeError(f"{function.__name__}: parameters and kinds differ")

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in kinds:
                    near = nearest(name, (*kinds,))
                    problem = f"{function.__name__} has no keyword {name!r}"
                    raise TypeError("; ".join(filter(None, (problem, near))))
            try:
                values = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}: {error}") from None
            keywords = values.pop(extra, {})
            for name in several:
                for place, value in enumerate(values.pop(name, ())):
                    kinds[name].check(f"{name}[{place}]", value)
            check(kinds, {**values, **keywords})
            return function(*args, **kwargs)

        return readable(checked)

    return decorate


_LONGEST, _MOST_SHOWN = 60, 3


def shown(value: Any) -> str:
    """`value` in a message, on one line: what is plain as Python writes it, else its type."""
    text = _written(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _written(value: Any) -> str:
    match value:
        case None | bool() | int() | float() | complex() | PurePath():
            return repr(value)
        case str() | bytes():
            return repr(value[:_LONGEST])
        case list() | tuple() | set() | frozenset():
            values = list(cast(Collection[Any], value))
            left, right = {"list": "[]", "tuple": "()"}.get(type(value).__name__, "{}")
            comma = "," if isinstance(value, tuple) and len(values) == 1 else ""
            return f"{left}{_some(map(_written, values[:_MOST_SHOWN]), len(values))}{comma}{right}"
        case dict():
            items = list(cast(dict[Any, Any], value).items())
            written = (f"{_written(k)}: {_written(v)}" for k, v in items[:_MOST_SHOWN])
            return f"{{{_some(written, len(items))}}}"
        case type():
            return f"the class {value.__name__}"
        case _:
            return f"an object of type {type(value).__name__}"


def _some(written: Iterable[str], count: int) -> str:
    return ", ".join((*written, *["…"] * (count > _MOST_SHOWN)))
