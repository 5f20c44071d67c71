"""The attributes of operators: their kinds and defaults."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from relax_egraph.errors import IllTyped
from relax_egraph.ir.expr import Attr

if TYPE_CHECKING:
    from relax_egraph.ir.op import Op

AttrKind: TypeAlias = Literal["int", "ints", "int or ints", "float", "floats", "bool", "str"]

REQUIRED = inspect.Parameter.empty
"""The default of an attribute that has none."""


@dataclass(frozen=True, slots=True)
class AttrParam:
    """A keyword parameter; an `optional` one may be ``None``."""

    name: str
    kind: AttrKind
    optional: bool
    default: Any


_ATTR_KINDS: Mapping[str, AttrKind] = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "tuple[int, ...]": "ints",
    "tuple[float, ...]": "floats",
    "int | tuple[int, ...]": "int or ints",
}


def complete_attrs(callee: "Op", attrs: Mapping[str, Attr]) -> dict[str, Attr]:
    """`attrs` with defaults for those that are missing, in the order of definition."""
    known = {a.name for a in callee.attrs}
    if unknown := [name for name in attrs if name not in known]:
        has = ", ".join(a.name for a in callee.attrs) or "none"
        raise IllTyped(f"{callee} has no attribute {unknown[0]!r}; it has: {has}")
    complete: dict[str, Attr] = {}
    for attr in callee.attrs:
        value = attrs.get(attr.name, attr.default)
        if value is REQUIRED:
            raise IllTyped(f"{callee} needs the attribute {attr.name!r}")
        complete[attr.name] = _checked(callee, attr, value)
    return complete


def _checked(callee: "Op", attr: AttrParam, value: Any) -> Attr:
    if value is None and attr.optional:
        return None
    match attr.kind, value:
        case "bool", bool():
            return value
        case "int", int() if not isinstance(value, bool):
            return value
        case "float", int() | float() if not isinstance(value, bool):
            return float(value)
        case "str", str():
            return value
        case "int or ints", int() if not isinstance(value, bool):
            return value
        case "ints", int() if not isinstance(value, bool):
            return (value,)
        case "ints" | "int or ints", list() | tuple() if all(isinstance(v, int) for v in value):
            return tuple(value)
        case "floats", list() | tuple() if all(isinstance(v, int | float) for v in value):
            return tuple(map(float, value))
        case _:
            raise IllTyped(f"{callee}: attribute {attr.name} is {value!r}, needs {_SAY[attr.kind]}")


_SAY = {
    "int": "an int",
    "ints": "a list of ints",
    "int or ints": "an int or a list of ints",
    "float": "a float",
    "floats": "a list of floats",
    "bool": "a bool",
    "str": "a str",
}


def attr_kind(annotation: Any) -> tuple[AttrKind, bool]:
    """The kind of a parameter by its annotation, and whether it is optional."""
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if str(annotation).startswith("tuple["):
        text = str(annotation)
    optional = text.endswith(" | None")
    return _ATTR_KINDS[text.removesuffix(" | None")], optional
