"""Vectorized loops: full vectors, then a masked remainder.

The values of several vectors of a statement are computed before the first is stored, so that they
overlap in the processor.  Reductions use as many accumulators.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from relax_egraph.lower.codegen.accumulators import Accumulators
from relax_egraph.lower.codegen.expr import evaluate, filled, value
from relax_egraph.lower.codegen.index import Ramp, Repeated, Scalar
from relax_egraph.lower.codegen.memory import store
from relax_egraph.lower.codegen.scope import MEMORY_TYPES, Known, Scope
from relax_egraph.lower.codegen.stream import fetch_ahead, past_caches
from relax_egraph.lower.codegen.vectorize import Plan, plan, unconditional, upper_bound
from relax_egraph.lower.emit import vector
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.target import Target
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads, stores
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
    assert not isinstance(extent, Ramp | Repeated)
    if not isinstance(extent, int):
        # Values computed before the loop read memory that may not exist if the loop is empty.
        with f.when(f.compare(">", extent, 0)):
            _Writer(scope, loop, lane_plan, target, emit).write(extent)
    elif extent > 0:
        _Writer(scope, loop, lane_plan, target, emit).write(extent)
    return True


class _Writer:
    """Writes one vectorized loop."""

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
        self.sums = Accumulators(scope, lane_plan)
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
        masked = rest > self._narrows and self._has_masked_tail
        if masked:
            self._vectors([vectors * lanes], rest)
        self.sums.finish()
        if rest and not masked:
            self._serial(vectors * lanes, extent)

    def _symbolic(self, extent: Value) -> None:
        lanes, unroll = self.plan.lanes, self.plan.unroll
        bound = upper_bound(self.loop.extent)
        begin: Scalar = 0
        if bound is None or bound > lanes or not self._has_masked_tail:
            begin = extent & -(unroll * lanes)
            self._full_vectors(begin)
        if self._has_masked_tail and unroll == 1 and begin != 0 and not self.sums:
            with self.f.when(self.f.compare("<", begin, extent)):
                self._vectors([begin], extent - begin)
        elif self._has_masked_tail:
            with self.f.loop(begin, extent, lanes, self.sums.carried(1)) as turns:
                self.sums.resume(turns.values, 1)
                self._vectors([turns.index], extent - turns.index)
                turns.carry(*self.sums.carried(1))
            self.sums.resume(turns.results, 1)
            self.sums.finish()
        else:
            self.sums.finish()
            self._serial(begin, extent)

    @property
    def _narrows(self) -> bool:
        """Whether a store may be of fewer bits than its value is computed in."""
        return any(MEMORY_TYPES[s.buffer.dtype].bits < 32 for s in stores(self.loop.body))

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
        with self.f.loop(0, end, unroll * lanes, self.sums.carried(unroll)) as turns:
            self.sums.resume(turns.values, unroll)
            starts = [turns.index + k * lanes for k in range(unroll)]
            for group in self._groups(starts):
                fetch_ahead(group, [s.value for s in unconditional(self.loop.body)])
            self._vectors(starts)
            turns.carry(*self.sums.carried(unroll))
        self.sums.resume(turns.results, unroll)
        self.past.clear()

    def _serial(self, begin: Scalar, end: Scalar) -> None:
        with self.f.loop(begin, end) as turns:
            self.emit(self.outside.with_variable(self.loop.var, turns.index), self.loop.body)

    def _start(self, stmt: Stmt) -> None:
        """Begin the reductions of `stmt`, in order."""
        match stmt:
            case Store() if id(stmt) in self.plan.reductions:
                self.sums.begin(stmt)
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

    # --- the body ---------------------------------------------------------------------

    def _vectors(self, starts: Sequence[Scalar], count: Scalar | None = None) -> None:
        """Write the body for whole vectors, or for `count` lanes: the first, or more than all."""
        self._body(self._groups(starts, count), self.loop.body)

    def _groups(self, starts: Sequence[Scalar], count: Scalar | None = None) -> list[Scope]:
        scope = self.inside
        if count is not None:
            scope = scope.of_first(count, vector.first_lanes(self.f, count, self.plan.lanes))
        ramps = [Ramp(start, 1, multiple=self.plan.lanes) for start in starts]
        return [scope.with_variable(self.loop.var, ramp) for ramp in ramps]

    def _body(self, groups: Sequence[Scope], stmt: Stmt) -> None:
        """Write `stmt` for each vector of `groups`."""
        match stmt:
            case Seq(body=parts):
                for run in _runs(parts, self.plan):
                    if len(run) == 1:
                        self._body(groups, run[0])
                    else:
                        self._together(groups, [s for s in run if isinstance(s, Store)])
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
                self.sums.accumulate([g.fresh() for g in groups], stmt)
            case Store(value=stored):
                groups = [g.fresh() for g in groups]
                self._store(groups, stmt, [value(g, stored) for g in groups])
            case _:
                raise AssertionError(f"{type(stmt).__name__} in a vectorized loop")

    def _together(self, groups: Sequence[Scope], stores: Sequence[Store]) -> None:
        """Write stores whose common subexpressions are computed once."""
        groups = [g.fresh() for g in groups]
        values = [[value(g, s.value) for g in groups] for s in stores]
        for stmt, of_groups in zip(stores, values, strict=True):
            self._store(groups, stmt, of_groups)

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
            if self.sums:
                self._body(inside, arm)
                continue
            for group in inside:
                assert group.mask is not None
                with self.f.when(vector.reduce("or", group.mask)):
                    self._body([group], arm)


def _runs(parts: Sequence[Stmt], plan: Plan) -> list[list[Stmt]]:
    """`parts` in consecutive runs of stores, none of which reads what another one writes."""
    runs: list[list[Stmt]] = []
    written: set[Buffer] = set()
    for part in parts:
        joins = isinstance(part, Store) and id(part) not in plan.reductions
        read = {load.buffer for load in loads(part)}
        if not joins or not runs or not written or read & written:
            runs.append([])
            written = set()
        runs[-1].append(part)
        if joins and isinstance(part, Store):
            written.add(part.buffer)
        else:
            written = set()
    return runs


def _store_each(
    groups: Sequence[Scope], stmt: Store, values: Sequence[Value], *, past_caches: bool = False
) -> None:
    for group, one in zip(groups, values, strict=True):
        group = group.fresh()
        indices = [evaluate(group, i) for i in stmt.indices]
        store(group, stmt.buffer, indices, one, past_caches=past_caches)
