"""The meanings of the operators on tagged values."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relax_egraph.base.tagged import Tagged
from relax_egraph.errors import RunError
from relax_egraph.ir.matching import describe


def _tag_of(value: Any) -> int:
    return _tagged("tag_of", value).tag


def _has_tag(value: Any, tag: int) -> Any:
    return np.asarray(_tagged("has_tag", value).tag == tag)


def _field_of(value: Any, index: int) -> Any:
    fields = _tagged("field_of", value).fields
    if not 0 <= index < len(fields):
        raise RunError(f"R.field_of: field {index} of {len(fields)}")
    return fields[index]


def _tagged(operator: str, value: Any) -> Tagged:
    if type(value) is not Tagged:
        raise RunError(f"R.{operator}: the value is {describe(value)}, needs a tagged value")
    return value


MEANINGS: Mapping[str, Callable[..., Any]] = {
    "make_tagged": Tagged,
    "tag_of": _tag_of,
    "has_tag": _has_tag,
    "field_of": _field_of,
}
"""What the operators on tagged values compute."""
