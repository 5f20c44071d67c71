"""The results of one operator, in its own dtype and in float64."""

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
from relax_egraph.ir.op import Op
from relax_egraph.ir.operators import named
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.verify.values.called import called, in_float64
from relax_egraph.verify.values.canonical import once_rounded
from relax_egraph.verify.values.inputs import Array
from relax_egraph.verify.values.program import host_value
from relax_egraph.verify.values.tolerance import Computed

Result: TypeAlias = Computed | tuple[Computed, ...]


def computed(
    node: Node[C],
    value_of: Callable[[C], Result | None],
    extents: Mapping[str, int],
    jitter: np.random.Generator | None = None,
) -> Result | None:
    """The value of `node`, which is not a leaf, from the values of its operands.

    It is ``None`` if `value_of` returns ``None`` for an operand.  `jitter` adds rounding errors, as
    in `applied`.
    """
    match node.op:
        case nodes.SCALAR:
            return _number(node.scalar, node.dtype)
        case nodes.LOAD | nodes.STORE | nodes.WHOLE:
            return value_of(node.operands[0])
        case nodes.TUPLE_GET:
            whole, ((_, index),) = value_of(node.operands[0]), node.attrs
            return whole[index] if isinstance(whole, tuple) and isinstance(index, int) else None
        case name if name in nodes.CALLS:
            return _called(node, value_of, extents, jitter)
        case name:
            return applied(named(name), node.children, dict(node.attrs), value_of, extents, jitter)


def _called(
    node: Node[C],
    value_of: Callable[[C], Result | None],
    extents: Mapping[str, int],
    jitter: np.random.Generator | None,
) -> Result | None:
    """The result of a call of a function below the graph."""
    results = [value_of(c) for c in node.operands]
    known = [r for r in results if isinstance(r, Computed)]
    if len(known) < len(results):
        return None
    value = called(node, [r.value for r in known], extents)
    wide = in_float64(node, [r.wide for r in known], extents, value)
    return _computed(_rounded(value, wide, jitter), wide, known)


def applied(
    op: Op,
    children: tuple[Any, ...],
    attrs: dict[str, Any],
    value_of: Callable[[Any], Result | None],
    extents: Mapping[str, int],
    jitter: np.random.Generator | None = None,
) -> Result | None:
    """The result of `op` on `children`, where `value_of` has the values of tensors.

    It is ``None`` if `value_of` returns ``None`` for an operand.  With a generator `jitter`, each
    element that the operator rounds is off by up to another unit in its last place, as in Monte
    Carlo arithmetic (Parker, 1997).
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
                parts = [value_of(c) for c in child]
                elements = [p for p in parts if isinstance(p, Computed)]
                if len(elements) != len(parts):
                    return None
                narrow.append(tuple(p.value for p in elements))
                wide.append(tuple(p.wide for p in elements))
                known += elements
            case _:
                one = value_of(child)
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
        return tuple(_computed(_rounded(v, w, jitter), w, known) for v, w in pairs)
    return _computed(_rounded(value, other, jitter), other, known)


def _rounded(value: Any, wide: Any, jitter: np.random.Generator | None) -> Any:
    """`value` with random errors where it differs from `wide`: exact elements stay."""
    if jitter is None or not isinstance(value, np.ndarray):
        return value
    dtype = name_of(value.dtype)
    if not is_float(dtype) or is_stored(dtype) or not value.size:
        return value
    with np.errstate(all="ignore"):
        unit = np.abs(value.astype(np.float64)) * float(limits(dtype).eps)
        inexact = np.isfinite(value) & (value.astype(np.float64) != wide)
        off = np.where(inexact, unit * jitter.uniform(-1, 1, value.shape), 0)
        return (value.astype(np.float64) + off).astype(value.dtype)


def _computed(value: Any, wide: Any, operands: Sequence[Computed]) -> Computed:
    """A result, with the largest magnitudes of its elements and of `operands`."""
    result = _of(np.asarray(value), np.asarray(wide))
    scale = max(result.scale, *(o.scale for o in operands), 0.0)
    range_used = max(result.range_used, *(o.range_used for o in operands), 0.0)
    return replace(result, scale=scale, range_used=range_used)


def exact(value: Array) -> Computed:
    """`value` without a rounding error."""
    return _of(value, value.astype(np.float64) if is_float(name_of(value.dtype)) else value)


def _number(number: float, dtype: str) -> Computed:
    """The value of ``(R.const number dtype)``; raises ``ValueError`` if `dtype` lacks the number.

    Rules go on with the number, not with what an element becomes of it: 2.0 as a bool is true, but
    a later ``astype`` would make 2 of it.
    """
    made = constant(number, (), dtype)
    if not is_float(dtype) and made.value != number:
        raise ValueError(f"{number} is no number of dtype {dtype}")
    return made


def constant(number: float, shape: tuple[int, ...], dtype: str) -> Computed:
    """A tensor whose elements are `number`."""
    value = np.full(shape, dtypes.scalar(number, dtype))
    return _of(value, np.full(shape, number) if is_float(dtype) else value)


def _of(value: Array, wide: Array) -> Computed:
    """A value with its own magnitude: it has no operands."""
    scale = _magnitude(wide)
    dtype = name_of(value.dtype)
    return Computed(value, wide, scale, scale / float(limits(dtype).max) if is_float(dtype) else 0)


def _magnitude(x: Array) -> float:
    """The largest magnitude of a finite number in `x`; 0 if there is none."""
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
