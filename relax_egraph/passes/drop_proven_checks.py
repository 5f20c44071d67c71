"""Drops index checks that are proven to hold, by interval arithmetic on integers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.ir import dims
from relax_egraph.ir.assumptions import Assumptions, assuming
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_integer
from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    PrimValue,
    Tuple,
    TupleGetItem,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo
from relax_egraph.passes.check_assumptions import assumed_behind
from relax_egraph.passes.infra import function_pass

MOST_STEPS = 64
"""The depth of operators that the search for a range visits."""


@function_pass(name="drop_proven_checks")
def drop_proven_checks(function: Function, _: IRModule) -> Function:
    """Replace ``R.check_indices`` by its operand where no index can be out of bounds.

    Bounds of sizes that the function checks first are known.

    i = R.argmax(x, axis=1)                        # x: (n, 10)
    j = R.check_indices(i, R.shape([10]), axes=[0])
    -->
    i = R.argmax(x, axis=1)
    """
    changed = _Prover(assumed_behind(function, Assumptions())).visit_expr(function)
    assert isinstance(changed, Function)
    return changed


@dataclass(frozen=True, slots=True)
class Range:
    """A range of integers: bounds of all elements, ``None`` where unknown."""

    low: Dim | None = None
    high: Dim | None = None

    def within(self, extent: Dim, least: int | None = None) -> bool:
        """Whether each element is a valid index into an axis of `extent`, and `least` or more.

        Without `least` they may count from the end.
        """
        if self.low is None or self.high is None:
            return False
        below = dims.add(self.low, extent) if least is None else dims.sub(self.low, least)
        above = dims.sub(extent, 1)
        return dims.prove_ge(below, 0) and dims.prove_ge(above, self.high)


_ANY = Range()


class _Prover(ExprMutator):
    """Drops checks behind which the assumptions `known` hold."""

    def __init__(self, known: Assumptions) -> None:
        super().__init__()
        self._known = known

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        match visited:
            case Call(op=Op(name="check_indices"), args=(indices, shape)):
                least = None if visited.attrs.get("from_end", True) else 0
                with assuming(self._known):
                    is_proven = self._is_proven(indices, shape, visited.attrs["axes"], least)
                return indices if is_proven else visited
            case _:
                return visited

    def _is_proven(self, indices: Expr, shape: Expr, axes: object, least: int | None) -> bool:
        info = shape.struct_info
        if not isinstance(info, ShapeStructInfo) or info.values is None:
            return False
        assert isinstance(axes, tuple)
        extents = [info.values[a] for a in axes]
        value = self._computed(indices)
        if isinstance(value, Constant) and len(extents) > 1:
            columns = np.moveaxis(value.data, -1, 0)
            pairs = zip(columns, extents, strict=False)
            return len(columns) <= len(extents) and all(
                _of_array(c).within(e, least) for c, e in pairs
            )
        known = self._range(indices, MOST_STEPS)
        return all(known.within(e, least) for e in extents)

    def _computed(self, value: Expr) -> Expr:
        """`value`, or the expression that the variable is bound to."""
        return self.lookup_binding(value) or value

    def _range(self, value: Expr, steps: int) -> Range:
        """The range of the integers in `value`; `steps` bounds the depth of the search."""
        value = self._computed(value)
        match value:
            case Constant(data=data) if is_integer(data.dtype.name) or data.dtype == bool:
                return _of_array(data)
            case Call(op=Op(name=name)) if steps and name in _RULES:
                known = _RULES[name](value, lambda e: self._range(e, steps - 1))
            case TupleGetItem(tuple_value=inner, index=1):
                known = _of_topk(self._computed(inner))
            case _:
                known = _ANY
        return _of_dtype(value) if known == _ANY else known


Operand: TypeAlias = Callable[[Expr], Range]
"""Computes the range of an operand."""


def _of_array(data: npt.NDArray[Any]) -> Range:
    return Range(int(data.min()), int(data.max())) if data.size else Range(0, -1)


def _of_dtype(value: Expr) -> Range:
    """The range of a narrow integer dtype."""
    match value.struct_info:
        case TensorStructInfo(dtype="bool"):
            return Range(0, 1)
        case TensorStructInfo(dtype="int8" | "uint8" as dtype):
            return Range(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        case _:
            return _ANY


def _of_first(call: Call, of: Operand) -> Range:
    return of(call.args[0])


def _of_cast(call: Call, of: Operand) -> Range:
    """The range of the operand, if the new dtype can represent it."""
    known, info = of(call.args[0]), call.struct_info
    if not isinstance(info, TensorStructInfo) or info.dtype is None or not is_integer(info.dtype):
        return _ANY
    if known.low is None or known.high is None:
        return _ANY
    limits = np.iinfo(info.dtype)
    fits = dims.prove_ge(known.low, int(limits.min)) and dims.prove_ge(int(limits.max), known.high)
    return known if fits or info.dtype == "int64" else _ANY


def _extreme(f: Callable[[Dim, Dim], Dim], bounds: Sequence[Dim | None]) -> Dim | None:
    """`f` applied to all `bounds`; ``None`` if one is unknown."""
    known = [b for b in bounds if b is not None]
    return reduce(f, known) if known and len(known) == len(bounds) else None


def _union(ranges: Sequence[Range]) -> Range:
    """A range that contains all `ranges`."""
    low = _extreme(dims.minimum, [r.low for r in ranges])
    return Range(low, _extreme(dims.maximum, [r.high for r in ranges]))


def _of_concat(call: Call, of: Operand) -> Range:
    tensors = call.args[0]
    return _union([of(t) for t in tensors.fields]) if isinstance(tensors, Tuple) else _ANY


def _of_where(call: Call, of: Operand) -> Range:
    return _union([of(a) for a in call.args[1:]])


def _of_remainder(call: Call, of: Operand) -> Range:
    divisor = of(call.args[1])
    if divisor.low is None or divisor.high is None or not dims.prove_ge(divisor.low, 1):
        return _ANY
    return Range(0, dims.sub(divisor.high, 1))


def _of_minimum(call: Call, of: Operand) -> Range:
    a, b = map(of, call.args)
    return Range(_extreme(dims.minimum, [a.low, b.low]), _one_of(dims.minimum, a.high, b.high))


def _of_maximum(call: Call, of: Operand) -> Range:
    a, b = map(of, call.args)
    return Range(_one_of(dims.maximum, a.low, b.low), _extreme(dims.maximum, [a.high, b.high]))


def _one_of(f: Callable[[Dim, Dim], Dim], a: Dim | None, b: Dim | None) -> Dim | None:
    """`f` of two bounds; the known one if the other is unknown."""
    return f(a, b) if a is not None and b is not None else a if b is None else b


def _of_clip(call: Call, of: Operand) -> Range:
    known = of(call.args[0])
    low, high = (_whole(call.attrs.get(name)) for name in ("min", "max"))
    return Range(known.low if low is None else low, known.high if high is None else high)


def _whole(limit: object) -> int | None:
    """A limit of `clip` as an integer, if it is one and a float represents it exactly."""
    if isinstance(limit, int | float) and abs(limit) < 2**53 and float(limit).is_integer():
        return int(limit)
    return None


def _of_arange(call: Call, _: Operand) -> Range:
    numbers = [a.value if isinstance(a, PrimValue) else None for a in call.args]
    start, end, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if not isinstance(step, int) or step < 1 or start is None or end is None:
        return _ANY
    if isinstance(start, float) or isinstance(end, float):
        return _ANY
    return Range(start, dims.sub(end, 1))


def _of_places(call: Call, _: Operand) -> Range:
    return _places(call)


def _of_topk(value: Expr) -> Range:
    """The range of the indices that `value` returns, if it is a ``topk``."""
    match value:
        case Call(op=Op(name="topk")):
            return _places(value)
        case _:
            return _ANY


def _places(call: Call) -> Range:
    """The range of positions along an axis of the first operand, or among all its elements."""
    info, axis = call.args[0].struct_info, call.attrs.get("axis")
    if not isinstance(info, TensorStructInfo) or info.dims is None:
        return _ANY
    extents = info.dims if axis is None else (info.dims[int(str(axis))],)
    return Range(0, dims.sub(dims.product(extents), 1))


_MOVES: Sequence[str] = (
    *("reshape", "flatten", "broadcast_to", "permute_dims", "expand_dims", "squeeze", "flip"),
    *("strided_slice", "dynamic_strided_slice", "tile", "repeat", "check_indices"),
)

_RULES: Mapping[str, Callable[[Call, Operand], Range]] = {
    **dict.fromkeys(_MOVES, _of_first),
    "astype": _of_cast,
    "concat": _of_concat,
    "where": _of_where,
    "floor_mod": _of_remainder,
    "minimum": _of_minimum,
    "maximum": _of_maximum,
    "clip": _of_clip,
    "arange": _of_arange,
    **dict.fromkeys(("argmax", "argmin", "argsort"), _of_places),
}
"""By operator, the range of a call."""
