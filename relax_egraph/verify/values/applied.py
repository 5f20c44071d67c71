"""What one operator makes of values, in its own dtype and in float64."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from relax_egraph.egraph import node as nodes
from relax_egraph.egraph.node import C, Node
from relax_egraph.ir import dims, dtypes
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.dtypes import is_float, is_stored, limits, name_of
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.verify.values.canonical import once_rounded
from relax_egraph.verify.values.inputs import Array
from relax_egraph.verify.values.program import host_value
from relax_egraph.verify.values.tolerance import Computed

Result: TypeAlias = Computed | tuple[Computed, ...]


def computed(
    node: Node[C],
    given: Callable[[C], Result | None],
    extents: Mapping[str, int],
    shaken: np.random.Generator | None = None,
) -> Result | None:
    """The value of `node`, which is no leaf, of the values that are `given` of its operands.

    ``None`` if one of these is missing.  What is `shaken` is rounded at random, as in `applied`.
    """
    match node.op:
        case nodes.SCALAR:
            return constant(node.scalar, (), node.dtype)
        case nodes.LOAD | nodes.STORE | nodes.WHOLE:
            return given(node.operands[0])
        case nodes.TUPLE_GET:
            whole, ((_, index),) = given(node.operands[0]), node.attrs
            return whole[index] if isinstance(whole, tuple) and isinstance(index, int) else None
        case name:
            return applied(OPS[name], node.children, dict(node.attrs), given, extents, shaken)


def applied(
    op: Op,
    children: tuple[Any, ...],
    attrs: dict[str, Any],
    given: Callable[[Any], Result | None],
    extents: Mapping[str, int],
    shaken: np.random.Generator | None = None,
) -> Result | None:
    """What `op` makes of `children`, of which tensors have the values that are `given`.

    ``None`` if one of these is missing.  What is `shaken` is rounded at random: each element that
    the operator rounds is off by up to another unit in its last place, as in Monte Carlo arithmetic
    (Parker, 1997).
    """
    narrow: list[Any] = []
    wide: list[Any] = []
    known: list[Computed] = []
    for child in children:
        match child:
            case None:
                narrow.append(None)
                wide.append(None)
            case ShapeStructInfo(values=values):
                shape = tuple(dims.evaluate(d, extents) for d in values or ())
                narrow.append(shape)
                wide.append(shape)
            case PrimValue():
                number = host_value(child, extents)
                narrow.append(number)
                wide.append(number)
            case tuple() if type(child) is tuple:
                parts = [given(c) for c in child]
                several = [p for p in parts if isinstance(p, Computed)]
                if len(several) != len(parts):
                    return None
                narrow.append(tuple(p.value for p in several))
                wide.append(tuple(p.wide for p in several))
                known += several
            case _:
                one = given(child)
                if not isinstance(one, Computed):
                    return None
                narrow.append(one.value)
                wide.append(one.wide)
                known.append(one)
    while narrow and narrow[-1] is None:
        narrow.pop()
        wide.pop()
    value = once_rounded(op, narrow, attrs)
    if any(a is not b for a, b in zip(narrow, wide, strict=True)) or _says_float(attrs):
        other = apply_op(op, wide, _widened(attrs))
    else:
        other = value
    if isinstance(value, tuple) and isinstance(other, tuple):
        pairs = zip(value, other, strict=True)
        return tuple(_computed(_rounded(v, w, shaken), w, known) for v, w in pairs)
    return _computed(_rounded(value, other, shaken), other, known)


def _rounded(value: Any, wide: Any, shaken: np.random.Generator | None) -> Any:
    """`value`, shaken where it is not what `wide` says, which it is where nothing is lost."""
    if shaken is None or not isinstance(value, np.ndarray):
        return value
    dtype = name_of(value.dtype)
    if not is_float(dtype) or is_stored(dtype) or not value.size:
        return value
    with np.errstate(all="ignore"):
        unit = np.abs(value.astype(np.float64)) * float(limits(dtype).eps)
        inexact = np.isfinite(value) & (value.astype(np.float64) != wide)
        off = np.where(inexact, unit * shaken.uniform(-1, 1, value.shape), 0)
        return (value.astype(np.float64) + off).astype(value.dtype)


def _computed(value: Any, wide: Any, operands: Sequence[Computed]) -> Computed:
    """A result of `operands`."""
    made = _of(np.asarray(value), np.asarray(wide))
    scale = max(made.scale, *(o.scale for o in operands), 0.0)
    return replace(
        made, scale=scale, range_used=max(made.range_used, *(o.range_used for o in operands), 0.0)
    )


def exact(value: Array) -> Computed:
    """`value`, which means what it is."""
    return _of(value, value.astype(np.float64) if is_float(name_of(value.dtype)) else value)


def constant(number: float, shape: tuple[int, ...], dtype: str) -> Computed:
    """A tensor whose elements are `number`."""
    value = np.full(shape, dtypes.scalar(number, dtype))
    return _of(value, np.full(shape, number) if is_float(dtype) else value)


def _of(value: Array, wide: Array) -> Computed:
    """A value with the magnitude of what it means, no other number being on the way to it."""
    scale = _magnitude(wide)
    dtype = name_of(value.dtype)
    return Computed(value, wide, scale, scale / float(limits(dtype).max) if is_float(dtype) else 0)


def _magnitude(x: Array) -> float:
    """The largest finite number in `x`; 0 of none."""
    if not is_float(name_of(x.dtype)) or not x.size:
        return 0.0
    size = np.abs(x)
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


def _says_float(attrs: Mapping[str, Any]) -> bool:
    return any(isinstance(v, str) and v != "float64" and is_float(v) for v in attrs.values())


def _widened(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """`attrs` with float64 for every floating-point dtype."""
    return {
        k: "float64" if k.endswith("dtype") and isinstance(v, str) and is_float(v) else v
        for k, v in attrs.items()
    }
