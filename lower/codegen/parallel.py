"""Parallel loops: a nest becomes a function over a range of its iterations, shared by threads.

    task = Task(scope, nest)
    task.turns(write)           # writes the body, in the task's own scope
    task.finish()
    task.run(pool)              # calls it in place of the loop

The function, ``void f.task0(ptr context, i64 begin, i64 end)``, runs the iterations from `begin` to
`end` of the whole nest in order.  The values that it needs of the enclosing function (addresses of
buffers, sizes, variables) are passed in `context`, on the caller's stack.  If the loop is not worth
sharing, or there is no pool, one call runs all iterations.
"""

from collections.abc import Callable, Sequence

from relax_egraph.lower.codegen.buffers import row_major
from relax_egraph.lower.codegen.expr import evaluate
from relax_egraph.lower.codegen.index import Index, Ramp, Repeated, Scalar, combine
from relax_egraph.lower.codegen.parallel_loops import WORTH_SHARING, Nest
from relax_egraph.lower.codegen.scope import Frame, Scope
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I8, I64, PTR
from relax_egraph.lower.runtime.pool_code import RUN
from relax_egraph.tir.analysis import (
    buffers_of,
    private_buffers,
    symbols_of_buffers,
    symbols_of_stmt,
)
from relax_egraph.tir.rewrite import expressions, variables
from relax_egraph.tir.stmt import Stmt

Emit = Callable[[Scope, Stmt], None]
"""Writes a statement."""


class Task:
    """The iterations of `nest`, a loop at `outside`; `scope` is the scope of its body."""

    def __init__(self, outside: Scope, nest: Nest) -> None:
        f = outside.frame.f
        self._outside, self._nest = outside, nest
        self._f = Function(
            f.module, f"{f.name}.task{len(f.module.signatures)}", (PTR, I64, I64), internal=True
        )
        self._passed: list[Value] = []
        self._extents = _extents(outside, nest)
        self.scope = self._inside()

    def turns(self, emit: Emit) -> None:
        """Write the loops of the nest, and its body with `emit`."""
        _, begin, end = self._f.args
        if len(self._extents) == 1:
            self._loops(self.scope, 0, [], (begin, end), emit)
            return
        inner = [self._get(extent) for extent in self._extents[1:]]
        with self._f.when(self._f.compare("<", begin, end)):  # else a size may be 0
            self._loops(self.scope, 0, inner, (begin, end), emit)

    def finish(self) -> None:
        """Add the function to its module."""
        self._f.finish()

    def run(self, pool: Value) -> None:
        """Call the task for all iterations, shared by the threads of `pool` if that pays."""
        f, scope = self._outside.frame.f, self._outside.fresh()
        context = f.allocate(I64, max(1, len(self._passed)))
        for number, value in enumerate(self._passed):
            f.store(value, f.address(context, number, I64))
        turns = f.index(_product(f, self._extents))
        cost = f.index(_scalar(evaluate(scope, self._nest.cost)))
        is_shared = f.compare("!=", pool, f.const(PTR, 0)) & f.compare(">", cost, WORTH_SHARING)
        with f.either(is_shared) as (shared, alone):
            with shared:
                run = f.load(f.address(pool, RUN, I8), PTR)
                task = Value(f, PTR, f"@{self._f.name}")
                f.call_pointer(run, pool, task, context, turns, cost)
            with alone:
                f.call(self._f.name, context, f.const(I64, 0), turns)

    # --- the values of the task ----------------------------------------------------------

    def _inside(self) -> Scope:
        outside, loop = self._outside, self._nest.loops[0]
        own = private_buffers(loop)
        buffers = [b for b in buffers_of(loop) if b not in own]
        symbol_names = symbols_of_stmt(loop) | symbols_of_buffers(buffers)
        outer_symbols = {name: outside.frame.symbols[name] for name in sorted(symbol_names)}
        symbols = {name: self._load(symbol) for name, symbol in outer_symbols.items()}
        status = outside.frame.status and self._load(outside.frame.status)
        frame = Frame(self._f, symbols, streamed=outside.frame.streamed, status=status)
        for buffer in buffers:
            frame.pointers[buffer] = self._load(outside.frame.pointers[buffer])
            frame.strides[buffer] = row_major(frame, buffer.shape)
        used = {v for e in expressions(loop) for v in variables(e)}
        scope = Scope(frame)
        for var, index in outside.variables.items():
            if var in used:
                scope = scope.with_variable(var, self._get(_scalar(index)))
        return scope

    def _get(self, scalar: Scalar) -> Scalar:
        """`scalar`, a value outside the task, inside it."""
        return scalar if isinstance(scalar, int) else self._load(scalar)

    def _load(self, value: Value) -> Value:
        place = self._f.address(self._f.args[0], len(self._passed), I64)
        self._passed.append(value)
        return self._f.load(place, value.type)

    # --- loops ------------------------------------------------------------------------

    def _loops(
        self,
        scope: Scope,
        depth: int,
        inner: Sequence[Scalar],
        bounds: tuple[Value, Value],
        emit: Emit,
    ) -> None:
        """The loops from `depth` on, over the iterations within `bounds`.

        `inner` are the extents of the loops inside the one at `depth`: an iteration of it stands
        for their product of iterations of the whole nest.
        """
        f, var, (begin, end) = self._f, self._nest.loops[depth].var, bounds
        if not inner:
            with f.loop(begin, end) as turns:
                emit(scope.with_variable(var, turns.index), self._nest.body)
            return
        size = f.index(_product(f, inner))
        first = f.binary("udiv", begin, size)
        last = f.binary("udiv", end - 1, size)
        with f.loop(first, last + 1) as turns:
            before = turns.index * size
            part = (f.maximum(begin - before, 0), f.minimum(end - before, size))
            self._loops(scope.with_variable(var, turns.index), depth + 1, inner[1:], part, emit)


def _extents(scope: Scope, nest: Nest) -> list[Scalar]:
    """The extents of the loops; if there are several, none is negative, so products are right."""
    extents = [_scalar(evaluate(scope.fresh(), loop.extent)) for loop in nest.loops]
    if len(extents) == 1:
        return extents
    f = scope.frame.f
    return [max(e, 0) if isinstance(e, int) else f.maximum(e, 0) for e in extents]


def _product(f: Function, extents: Sequence[Scalar]) -> Scalar:
    total: Scalar = 1
    for extent in extents:
        total = _scalar(combine(f, "*", total, extent, 1))
    return total


def _scalar(index: Index) -> Scalar:
    assert not isinstance(index, Ramp | Repeated)
    return index
