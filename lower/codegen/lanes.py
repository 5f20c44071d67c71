"""Vectorized loops: full vectors, then a masked remainder.

The values of several vectors of a statement are computed before the first is stored, so that they
overlap in the processor.  Reductions use as many accumulators, which are combined with the value of
the buffer after the loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.lower.codegen.expr import arithmetic, evaluate, filled, value
from relax_egraph.lower.codegen.index import Ramp, Scalar
from relax_egraph.lower.codegen.memory import load, store
from relax_egraph.lower.codegen.scope import REGISTER_TYPES, Known, Scope
from relax_egraph.lower.codegen.stream import fetch_ahead, past_caches
from relax_egraph.lower.codegen.vectorize import Plan, plan, unconditional, upper_bound
from relax_egraph.lower.emit import vector
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.target import Target
from relax_egraph.tir.stmt import For, IfThenElse, Seq, Stmt, Store, TirBlock

Emit = Callable[[Scope, Stmt], None]
"""Writes a statement on one lane."""

LARGEST_STRAIGHT = 64
"""The maximal operations of a loop of constant extent that is written without a loop."""

MOST_STRAIGHT = 8
"""The maximal vectors of such a loop: LLVM is slow for many addresses."""


def vectorized(scope: Scope, loop: For, target: Target, emit: Emit) -> bool:
    """Write `loop` on lanes; returns ``False``, and writes nothing, if it must run serially."""
    lane_plan = plan(loop, target)
    if lane_plan is None:
        return False
    f = scope.frame.f
    extent = evaluate(scope.fresh(), loop.extent)
    assert not isinstance(extent, Ramp)
    if not isinstance(extent, int):
        # Values computed before the loop read memory that may not exist if the loop is empty.
        with f.when(f.compare(">", extent, 0)):
            _Writer(scope, loop, lane_plan, target, emit).write(extent)
    elif extent > 0:
        _Writer(scope, loop, lane_plan, target, emit).write(extent)
    return True


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


class _Writer:
    """Writes one vectorized loop; `totals` are the current values of the accumulators."""

    def __init__(
        self, scope: Scope, loop: For, lane_plan: Plan, target: Target, emit: Emit
    ) -> None:
        self.f = scope.frame.f
        self.loop, self.plan, self.target, self.emit = loop, lane_plan, target, emit
        for var, binding in lane_plan.lets:
            scope = scope.with_variable(var, evaluate(scope.fresh(), binding))
        self.outside = scope
        known = Known()
        for expr in lane_plan.once:
            known[id(expr)] = (expr, self.f.splat(value(scope.fresh(), expr), lane_plan.lanes))
        self.inside = replace(scope, lanes=lane_plan.lanes, known=known)
        self.totals: list[list[Value]] = []
        self.places: dict[int, int] = {}
        self.reduced: list[Store] = []
        self.past: dict[int, Value] = {}

    # --- the loop ---------------------------------------------------------------------

    def write(self, extent: Scalar) -> None:
        """Write the whole loop, whose `extent` is positive."""
        self._start(self.loop.body)
        if isinstance(extent, int):
            self._constant(extent)
        else:
            self._symbolic(extent)

    def _constant(self, extent: int) -> None:
        lanes, unroll = self.plan.lanes, self.plan.unroll
        vectors, rest = divmod(extent, lanes)
        begin = 0
        is_long = vectors * self.plan.cost > LARGEST_STRAIGHT or vectors > MOST_STRAIGHT
        if is_long and vectors > unroll:
            begin = vectors // unroll * unroll * lanes
            self._full_vectors(begin)
        for start in range(begin, vectors * lanes, unroll * lanes):
            count = min(unroll, vectors - start // lanes)
            self._vectors([start + k * lanes for k in range(count)])
        # LLVM turns a narrowing store under a constant mask of one lane into a scalar store of the
        # wide type, which writes beyond the element.
        masked = rest > 1 and self._has_masked_tail
        if masked:
            self._vectors([vectors * lanes], vector.first_lanes(self.f, rest, lanes))
        self._finish()
        if rest and not masked:
            self._serial(vectors * lanes, extent)

    def _symbolic(self, extent: Value) -> None:
        lanes, unroll = self.plan.lanes, self.plan.unroll
        bound = upper_bound(self.loop.extent)
        begin: Scalar = 0
        if bound is None or bound > lanes or not self._has_masked_tail:
            begin = extent & -(unroll * lanes)
            self._full_vectors(begin)
        if self._has_masked_tail and unroll == 1 and begin != 0 and not self.reduced:
            with self.f.when(self.f.compare("<", begin, extent)):
                self._vectors([begin], vector.first_lanes(self.f, extent - begin, lanes))
        elif self._has_masked_tail:
            with self.f.loop(begin, extent, lanes, self._carried(1)) as turns:
                self._resume(turns.values, 1)
                mask = vector.first_lanes(self.f, extent - turns.index, lanes)
                self._vectors([turns.index], mask)
                turns.carry(*self._carried(1))
            self._resume(turns.results, 1)
            self._finish()
        else:
            self._finish()
            self._serial(begin, extent)

    @property
    def _has_masked_tail(self) -> bool:
        return self.target.vector_bits > 128

    def _full_vectors(self, end: Scalar) -> None:
        """Whole iterations of `unroll` vectors, from 0 to `end`."""
        lanes, unroll = self.plan.lanes, self.plan.unroll
        for stmt in unconditional(self.loop.body):
            on = past_caches(self.inside, self.loop.var, stmt)
            if on is not None:
                self.past[id(stmt)] = on
        with self.f.loop(0, end, unroll * lanes, self._carried(unroll)) as turns:
            self._resume(turns.values, unroll)
            starts = [turns.index + k * lanes for k in range(unroll)]
            for group in self._groups(starts):
                fetch_ahead(group, [s.value for s in unconditional(self.loop.body)])
            self._vectors(starts)
            turns.carry(*self._carried(unroll))
        self._resume(turns.results, unroll)
        self.past.clear()

    def _serial(self, begin: Scalar, end: Scalar) -> None:
        with self.f.loop(begin, end) as turns:
            self.emit(self.outside.with_variable(self.loop.var, turns.index), self.loop.body)

    # --- accumulators -----------------------------------------------------------------

    def _start(self, stmt: Stmt) -> None:
        match stmt:
            case Store() if id(stmt) in self.plan.reductions:
                kind = self.plan.reductions[id(stmt)].kind
                type = REGISTER_TYPES[stmt.buffer.dtype].of(self.plan.lanes)
                neutral = self.f.const(type, identity(kind, stmt.buffer.dtype))
                self.places[id(stmt)] = len(self.totals)
                self.totals.append([neutral] * self.plan.unroll)
                self.reduced.append(stmt)
            case Seq(body=parts):
                for part in parts:
                    self._start(part)
            case TirBlock(body=body):
                self._start(body)
            case IfThenElse(then_case=then_case, else_case=else_case):
                self._start(then_case)
                if else_case is not None:
                    self._start(else_case)
            case _:
                pass

    def _carried(self, count: int) -> Sequence[Value]:
        """All accumulators, `count` of each reduction: surplus ones are combined into the first."""
        for store_, total in zip(self.reduced, self.totals, strict=True):
            self._merge(store_, total, count)
        return [v for total in self.totals for v in total]

    def _merge(self, stmt: Store, total: list[Value], count: int) -> None:
        kind = self.plan.reductions[id(stmt)].kind
        while len(total) > count:
            half = (len(total) + 1) // 2
            for k in range(half, len(total)):
                total[k - half] = arithmetic(kind, stmt.buffer.dtype, total[k - half], total[k])
            del total[half:]

    def _resume(self, values: Sequence[Value], count: int) -> None:
        self.totals = [list(values[k * count : (k + 1) * count]) for k in range(len(self.reduced))]

    def _finish(self) -> None:
        """Combine the accumulators with the values of the buffers."""
        for stmt, total in zip(self.reduced, self.totals, strict=True):
            self._merge(stmt, total, 1)
            kind, dtype = self.plan.reductions[id(stmt)].kind, stmt.buffer.dtype
            lanes_kind = {"+": "or", "max": "or", "*": "and", "min": "and"}.get(kind, kind)
            result = vector.reduce(
                lanes_kind if dtype == "bool" else kind, total[0], signed=is_signed(dtype)
            )
            scope = self.outside.fresh()
            indices = [evaluate(scope, i) for i in stmt.indices]
            old = load(scope, stmt.buffer, indices)
            store(scope, stmt.buffer, indices, arithmetic(kind, dtype, old, result))

    # --- the body ---------------------------------------------------------------------

    def _vectors(self, starts: Sequence[Scalar], mask: Value | None = None) -> None:
        self._body(self._groups(starts, mask), self.loop.body)

    def _groups(self, starts: Sequence[Scalar], mask: Value | None = None) -> list[Scope]:
        scope = self.inside if mask is None else self.inside.within(mask)
        return [scope.with_variable(self.loop.var, Ramp(s, 1)) for s in starts]

    def _body(self, groups: Sequence[Scope], stmt: Stmt) -> None:
        """Write `stmt` for each vector of `groups`."""
        match stmt:
            case Seq(body=parts):
                for part in parts:
                    self._body(groups, part)
            case TirBlock(axes=axes, body=body):
                for axis in axes:
                    if axis.var not in groups[0].variables:
                        groups = [
                            g.with_variable(axis.var, evaluate(g.fresh(), axis.binding))
                            for g in groups
                        ]
                self._body(groups, body)
            case IfThenElse():
                self._branch(groups, stmt)
            case Store() if id(stmt) in self.plan.reductions:
                for number, group in enumerate(groups):
                    self._accumulate(group.fresh(), stmt, number)
            case Store(value=stored):
                groups = [g.fresh() for g in groups]
                self._store(groups, stmt, [value(g, stored) for g in groups])
            case _:
                raise AssertionError(f"{type(stmt).__name__} in a vectorized loop")

    def _store(self, groups: Sequence[Scope], stmt: Store, values: Sequence[Value]) -> None:
        on = self.past.get(id(stmt))
        if on is None:
            _store_each(groups, stmt, values)
            return
        with self.f.either(on) as (past, through):
            with past:
                _store_each(groups, stmt, values, past_caches=True)
            with through:
                _store_each(groups, stmt, values)

    def _branch(self, groups: Sequence[Scope], stmt: IfThenElse) -> None:
        """Write each arm under the mask of its lanes, and skip it if no lane takes it.

        In a loop with reductions an arm is not skipped: it runs with all lanes off.
        """
        conditions = [filled(g.fresh(), stmt.condition) for g in groups]
        arms = [(stmt.then_case, conditions)]
        if stmt.else_case is not None:
            arms.append((stmt.else_case, [c ^ 1 for c in conditions]))
        for arm, masks in arms:
            inside = [g.within(m) for g, m in zip(groups, masks, strict=True)]
            if self.reduced:
                self._body(inside, arm)
                continue
            for group in inside:
                assert group.mask is not None
                with self.f.when(vector.reduce("or", group.mask)):
                    self._body([group], arm)

    def _accumulate(self, scope: Scope, stmt: Store, number: int) -> None:
        reduction, total = self.plan.reductions[id(stmt)], self.totals[self.places[id(stmt)]]
        old = total[number]
        terms = [filled(scope, t) for t in reduction.term]
        if len(terms) == 2 and old.type.is_float:
            new = self.f.fma(terms[0], terms[1], old)
        else:
            dtype = stmt.buffer.dtype
            term = terms[0] if len(terms) == 1 else arithmetic("*", dtype, terms[0], terms[1])
            # term before the old value: whether it is NaN is known earlier
            new = arithmetic(reduction.kind, dtype, term, old)
        total[number] = new if scope.mask is None else self.f.select(scope.mask, new, old)


def _store_each(
    groups: Sequence[Scope], stmt: Store, values: Sequence[Value], *, past_caches: bool = False
) -> None:
    for group, one in zip(groups, values, strict=True):
        group = group.fresh()
        indices = [evaluate(group, i) for i in stmt.indices]
        store(group, stmt.buffer, indices, one, past_caches=past_caches)
