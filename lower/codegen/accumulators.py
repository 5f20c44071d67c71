"""Reductions of a vectorized loop: several accumulators for each, combined after the loop.

Where no instruction passes NaN on, the extremes of floats ignore NaN inside of the loop.  Whether
there was one is remembered beside them, a bit for each lane, with one comparison for two vectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import nan
from operator import or_

from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.lower.codegen.expr import arithmetic, evaluate, filled
from relax_egraph.lower.codegen.memory import load, store
from relax_egraph.lower.codegen.scope import REGISTER_TYPES, Scope
from relax_egraph.lower.codegen.vectorize import Plan, Reduction
from relax_egraph.lower.emit import vector
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32
from relax_egraph.tir.stmt import Store

_ORDERS: Mapping[str, str] = {"min": "<", "max": ">"}


def identity(kind: str, dtype: str) -> float:
    """The neutral element of a combination: combined with it, a value of `dtype` is unchanged."""
    match kind:
        case "+" | "or":
            return -0.0 if is_float(dtype) else 0
        case "*" | "and":
            return 1
        case _ if is_float(dtype):
            return float("-inf") if kind == "max" else float("inf")
        case _ if dtype == "bool":
            return 0 if kind == "max" else 1
        case _:
            bits = REGISTER_TYPES[dtype].bits
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(dtype) else (0, -1)
            return low if kind == "max" else high


@dataclass(slots=True)
class _Total:
    """The accumulators of a reduction; `nans` are the lanes with a NaN so far, of an extreme."""

    stmt: Store
    reduction: Reduction
    values: list[Value]
    nans: Value | None

    @property
    def dtype(self) -> str:
        return self.stmt.buffer.dtype

    def combine(self, new: Value, old: Value) -> Value:
        """`old` combined with `new`; an extreme of floats ignores a NaN in `new`."""
        if self.nans is None:
            # term before the old value: whether it is NaN is known earlier
            return arithmetic(self.reduction.kind, self.dtype, new, old)
        f = new.function
        return f.select(f.compare(_ORDERS[self.reduction.kind], new, old), new, old)

    def merge(self, count: int) -> None:
        """Combine surplus accumulators into the first `count`."""
        while len(self.values) > count:
            half = (len(self.values) + 1) // 2
            for k in range(half, len(self.values)):
                self.values[k - half] = self.combine(self.values[k - half], self.values[k])
            del self.values[half:]


class Accumulators:
    """The accumulators of the reductions of a loop, `plan.unroll` for each at first."""

    def __init__(self, outside: Scope, plan: Plan) -> None:
        self.outside, self.plan, self.f = outside, plan, outside.frame.f
        self.totals: dict[int, _Total] = {}

    def __bool__(self) -> bool:
        return bool(self.totals)

    def begin(self, stmt: Store) -> None:
        """Begin the reduction `stmt`, with neutral elements."""
        reduction, dtype = self.plan.reductions[id(stmt)], stmt.buffer.dtype
        type = REGISTER_TYPES[dtype].of(self.plan.lanes)
        neutral = self.f.const(type, identity(reduction.kind, dtype))
        is_extreme = reduction.kind in _ORDERS and type.is_float
        ignores = is_extreme and not self.f.module.target.has_extremes
        nans = self.f.const(I32, 0) if ignores else None
        self.totals[id(stmt)] = _Total(stmt, reduction, [neutral] * self.plan.unroll, nans)

    def carried(self, count: int) -> Sequence[Value]:
        """All accumulators, `count` of each reduction, to be carried by a loop."""
        for total in self.totals.values():
            total.merge(count)
        return [v for t in self.totals.values() for v in (*t.values, *([t.nans] if t.nans else []))]

    def resume(self, values: Sequence[Value], count: int) -> None:
        """Continue with `values`, in the order of `carried`."""
        rest = iter(values)
        for total in self.totals.values():
            total.values = [next(rest) for _ in range(count)]
            total.nans = next(rest) if total.nans else None

    def accumulate(self, scopes: Sequence[Scope], stmt: Store) -> None:
        """Combine the terms in `scopes`, a vector each, with as many accumulators."""
        total = self.totals[id(stmt)]
        terms = [self._accumulate(scope, total, k) for k, scope in enumerate(scopes)]
        if total.nans is not None:
            unordered = self._unordered(terms, [scope.mask for scope in scopes])
            total.nans = total.nans | vector.bits_of(unordered)

    def _accumulate(self, scope: Scope, total: _Total, number: int) -> Value:
        """Combine one vector, and return it."""
        terms = [filled(scope, t) for t in total.reduction.term]
        old = total.values[number]
        if len(terms) == 2 and old.type.is_float:
            term = new = self.f.fma(terms[0], terms[1], old)
        else:
            one = len(terms) == 1
            term = terms[0] if one else arithmetic("*", total.dtype, terms[0], terms[1])
            new = total.combine(term, old)
        total.values[number] = new if scope.mask is None else self.f.select(scope.mask, new, old)
        return term

    def _unordered(self, terms: Sequence[Value], masks: Sequence[Value | None]) -> Value:
        """The lanes in which one of `terms` is NaN."""
        f, last = self.f, len(terms) - 1
        pairs = [(terms[k], terms[min(k + 1, last)]) for k in range(0, len(terms), 2)]
        on = [m for m in masks if m is not None]
        if on:
            alone = [f.compare("unordered", t, t) for t in terms]
            return reduce(or_, (a & m for a, m in zip(alone, on, strict=True)))
        return reduce(or_, (f.compare("unordered", a, b) for a, b in pairs))

    def finish(self) -> None:
        """Combine the accumulators with the values of the buffers."""
        for total in self.totals.values():
            total.merge(1)
            kind, dtype, scope = total.reduction.kind, total.dtype, self.outside.fresh()
            indices = [evaluate(scope, i) for i in total.stmt.indices]
            old = load(scope, total.stmt.buffer, indices)
            new = arithmetic(kind, dtype, old, self._across(total))
            store(scope, total.stmt.buffer, indices, new)

    def _across(self, total: _Total) -> Value:
        """The combination of all lanes."""
        kind, dtype, (value,) = total.reduction.kind, total.dtype, total.values
        if total.nans is not None:
            most = vector.extreme(_ORDERS[kind], value)
            return self.f.select(self.f.compare("!=", total.nans, 0), nan, most)
        of_bools = {"+": "or", "max": "or", "*": "and", "min": "and"}.get(kind, kind)
        return vector.reduce(of_bools if dtype == "bool" else kind, value, signed=is_signed(dtype))
