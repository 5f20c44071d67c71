"""Tuples and tagged values: containers of other values."""

from typing import Any

import numpy as np

from relax_egraph.base.tagged import Tagged
from relax_egraph.errors import RunError
from relax_egraph.vm.builtins.builtin import Builtin, of_values, wrong


def make_tuple(*fields: Any) -> tuple[Any, ...]:
    """A tuple."""
    return fields


def tuple_getitem(value: Any, index: Any) -> Any:
    """Field `index` of a tuple."""
    if type(value) is not tuple:
        raise wrong("tuple_getitem", "value", value, "a tuple")
    return _field("tuple_getitem", value, index)


def make_tagged(tag: Any, *fields: Any) -> Tagged:
    """A value of the constructor number `tag`, with its fields."""
    if type(tag) is not int:
        raise wrong("make_tagged", "tag", tag, "an integer")
    return Tagged(tag, fields)


def get_tag(value: Any) -> int:
    """The tag of a tagged value."""
    if type(value) is not Tagged:
        raise wrong("get_tag", "value", value, "a tagged value")
    return value.tag


def has_tag(value: Any, tag: Any) -> Any:
    """Whether a tagged value has the tag `tag`, as a boolean scalar tensor: a condition."""
    if type(value) is not Tagged:
        raise wrong("has_tag", "value", value, "a tagged value")
    if type(tag) is not int:
        raise wrong("has_tag", "tag", tag, "an integer")
    return np.asarray(value.tag == tag)


def get_field(value: Any, index: Any) -> Any:
    """Field `index` of a tagged value."""
    if type(value) is not Tagged:
        raise wrong("get_field", "value", value, "a tagged value")
    return _field("get_field", value.fields, index)


def null_value() -> None:
    """No value: an absent optional operand."""


def _field(name: str, fields: tuple[Any, ...], index: Any) -> Any:
    if type(index) is not int:
        raise wrong(name, "index", index, "an integer")
    if not 0 <= index < len(fields):
        raise RunError(f"vm.builtin.{name}: field {index} of {len(fields)}")
    return fields[index]


DATA: tuple[Builtin, ...] = (
    of_values(make_tuple),
    of_values(tuple_getitem),
    of_values(make_tagged),
    of_values(get_tag),
    of_values(has_tag),
    of_values(get_field),
    of_values(null_value),
)
