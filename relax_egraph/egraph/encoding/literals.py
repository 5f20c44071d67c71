"""Literals: the text of values in egglog's syntax."""

from typing import Any, cast

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.struct_info import Shape


def string(text: str) -> str:
    """A ``String``."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def number(value: float) -> str:
    """An ``f64``."""
    text = repr(float(value))
    return "NaN" if text == "nan" else text


def vector(items: list[str]) -> str:
    """A ``Vec`` of the texts `items`."""
    return f"(vec-of {' '.join(items)})" if items else "(vec-empty)"


def dim(value: Dim) -> str:
    """A ``Dim``."""
    return f"(DimSym {string(dims.text(value))})"


def shape(value: Shape) -> str:
    """A ``Shape``."""
    return vector([dim(d) for d in value])


def prim(value: PrimValue | None) -> str:
    """A ``Prim``."""
    match value:
        case None:
            return "(Prim.none)"
        case PrimValue(value=float() as scalar, dtype=dtype):
            return f"(Prim.number {number(scalar)} {string(dtype)})"
        case PrimValue(value=extent, dtype=dtype):
            return f"(Prim.dim {dim(cast(Dim, extent))} {string(dtype)})"


def attribute(sort: str, value: Attr) -> str | None:
    """An attribute of `sort`; ``None`` if `value` is not of that sort."""
    known: Any = value
    match sort, value:
        case "bool", bool():
            return "true" if value else "false"
        case "i64", int() if not isinstance(value, bool):
            return str(value)
        case "f64", int() | float() if not isinstance(value, bool):
            return number(value)
        case "String", str():
            return string(value)
        case "Axes", tuple():
            return vector([str(v) for v in known])
        case "Floats", tuple():
            return vector([number(v) for v in known])
        case _:
            return None
