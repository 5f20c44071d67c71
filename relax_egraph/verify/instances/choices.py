"""Random values for variables without constraints: shapes like others, attributes, numbers."""

import math
from typing import Any

import numpy as np

from relax_egraph.egraph.encoding.attributes import SORT_OF_ATTR, said
from relax_egraph.ir.dtypes import DTYPES, is_float
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import REQUIRED, AttrParam
from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.instances.known import Known
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.instances.slots import MISSING, Palette

_NUMBERS = (
    *(0.5, 2.0, 1.0, -1.0, 0.0, 3.0, 0.25, -1.5, 1e-5, -2.0, -3.0),
    *(70000.0, 16777217.0, -16777217.0),
)
_UNBOUNDED = (math.inf, -math.inf, math.nan)
"""Numbers that programs use in masks, and as absent bounds."""


def any_value(known: Known, variable: str, sort: str) -> Any:
    """A value of `sort`; literals that premises compare `variable` with come first."""
    palette, random = known.palette, known.palette.random
    near = known.beside(variable)
    if near and palette.chance(0.7):
        value = random.choice(near)
        if isinstance(value, float) and palette.chance(0.5):
            value = random.choice(
                (value * (1 + random.uniform(-3e-7, 3e-7)), value - 0.5, value + 0.5)
            )
        return _rounded(known, variable, float(value)) if sort == "f64" else value
    match sort:
        case "i64":
            return random.choice((0, 1, 2, 3, -1))
        case "f64":
            numbers = _UNBOUNDED if palette.chance(0.2) else _NUMBERS
            return _rounded(known, variable, random.choice(numbers))
        case "String" if variable in known.problem.dtypes.values():
            return palette.dtype
        case "String":
            return random.choice((palette.dtype, *DTYPES))
        case "bool":
            return palette.chance(0.5)
        case "Dim":
            return palette.extent()
        case "Shape":
            return palette.shape()
        case "Axes":
            return tuple(random.sample(range(4), random.randint(0, 3)))
        case "Floats":
            return ()
        case "Prim":
            return PrimValue(palette.static())
        case _:
            raise Fails


def _rounded(known: Known, variable: str, value: float) -> float:
    """`value`, rounded to the dtypes of the tensors with the constant `variable`."""
    tensors = [t for t, constant in known.problem.scalars.items() if constant == variable]
    dtypes = [known.get(known.problem.dtypes[t]) for t in tensors]
    for dtype in dict.fromkeys(dtypes):
        if dtype is not MISSING and is_float(dtype):
            with np.errstate(all="ignore"):
                value = float(np.asarray(value).astype(dtype))
    return value


def near_shape(shapes: list[Shape], palette: Palette) -> Shape:
    """A shape like one of `shapes`."""
    if not shapes or palette.chance(0.2):
        return palette.shape()
    items = list(palette.random.choice(shapes))
    match palette.random.randrange(5):
        case 0 if items:
            items.pop(palette.random.randrange(len(items)))
        case 1:
            items.insert(palette.random.randint(0, len(items)), palette.extent())
        case 2 if items:
            items = [items[palette.random.randrange(len(items))]]
        case _:
            pass
    return tuple(items)


def any_attribute(attr: AttrParam, rank: int, palette: Palette) -> Any:
    """A value of an attribute of an operator whose first operand has this rank."""
    default = attr.default
    if default is not REQUIRED and palette.chance(0.5) and "axis" not in attr.name:
        sort = SORT_OF_ATTR[attr.kind]
        if default is not None or sort in ("i64", "String", "Floats"):
            return said(attr, default)
    random = palette.random
    match attr.kind:
        case "bool":
            return palette.chance(0.5)
        case "int" if "axis" in attr.name:
            return random.randrange(max(rank, 1))
        case "int":
            return random.choice((0, 1, 2, 3))
        case "ints" | "int or ints":
            return tuple(
                sorted(random.sample(range(max(rank, 1)), random.randint(0, max(rank, 1))))
            )
        case "float":
            return random.choice(_UNBOUNDED if palette.chance(0.1) else (0.0, 0.5, 1.0, -1.0, 2.0))
        case "floats":
            return ()
        case "str" if attr.name.endswith("dtype"):
            return random.choice(DTYPES)
        case "str":
            return random.choice(("NCHW", "NHWC", "fast", "clip", "constant", "linear", "add"))
