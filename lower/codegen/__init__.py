"""Code generation: scheduled loop functions to LLVM.

A function ``f`` becomes ``i32 f(ptr pool, ptr …, i64 …)``: the thread pool, or null for the
caller's thread alone; the buffers, inputs before outputs; the values of `PrimFunc.symbols`.  An
output may alias an input of the same extent if each element is read only to compute the element
that replaces it.  The result is 0, or 1 if the scratch memory could not be allocated (`buffers`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relax_egraph.lower.codegen.block_init import guarded_init, init_without_turns, split_init
from relax_egraph.lower.codegen.buffers import all_on_stack, room_for, row_major
from relax_egraph.lower.codegen.check_tir import check
from relax_egraph.lower.codegen.expr import evaluate, value
from relax_egraph.lower.codegen.index import Index, Ramp, Repeated
from relax_egraph.lower.codegen.lanes import vectorized
from relax_egraph.lower.codegen.memory import address, store
from relax_egraph.lower.codegen.parallel import Task
from relax_egraph.lower.codegen.parallel_loops import Nest, shared_nests
from relax_egraph.lower.codegen.scope import Frame, Scope
from relax_egraph.lower.codegen.stream import in_order, streamed_buffers
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32, I64, PTR, IntrinsicEmitter, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.tir.analysis import private_buffers
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

MOST_COPIES = 1024
"""The maximal copies of a statement in unrolled loops; beyond that they stay loops."""


def generate(
    function: PrimFunc, name: str, target: Target, intrinsics: Mapping[str, IntrinsicEmitter]
) -> Module:
    """The module with `function` under `name`; raises `NotLowerable` if it cannot be compiled."""
    check(function, intrinsics)
    module = Module(target)
    params = [PTR, *(PTR for _ in function.params), *(I64 for _ in function.symbols)]
    f = Function(module, name, params, result=I32)
    pool, *args = f.args
    count = len(function.params)
    nests = shared_nests(function.body, target)
    task_buffers = [private_buffers(nest.body) for nest in nests.values()]
    scratch = [
        b for b in private_buffers(function.body) if not any(b in own for own in task_buffers)
    ]
    own = [*function.allocs, *scratch]
    status = None
    if not all(map(all_on_stack, [own, *task_buffers])):
        status = f.allocate(I32, 1)
        f.store(f.const(I32, 0), status)
    symbols = dict(zip(function.symbols, args[count:], strict=True))
    frame = Frame(f, symbols, streamed=streamed_buffers(function), status=status)
    for buffer, pointer in zip(function.params, args[:count], strict=True):
        frame.pointers[buffer] = pointer
        frame.strides[buffer] = row_major(frame, buffer.shape)
    with room_for(frame, own):
        _Writer(frame, target, pool, nests).write(Scope(frame), function.body)
    in_order(frame)
    f.finish(f.const(I32, 0) if status is None else f.load(status, I32))
    return module


@dataclass(slots=True)
class _Writer:
    """Writes the statements of one function.

    The loops of `nests` are shared by the threads of `pool`; in a task there are none.  `copies` is
    the number of copies of a statement in the current unrolled loops.
    """

    frame: Frame
    target: Target
    pool: Value | None = None
    nests: Mapping[int, Nest] = field(default_factory=dict[int, Nest])
    copies: int = 1

    # --- statements -------------------------------------------------------------------

    def write(self, scope: Scope, stmt: Stmt) -> None:
        """Write `stmt` on one lane, except for the vectorized loops in it."""
        f = self.frame.f
        match stmt:
            case Store(buffer=buffer, indices=indices, value=stored):
                scope = scope.fresh()
                result = value(scope, stored)
                store(scope, buffer, [evaluate(scope, i) for i in indices], result)
            case Seq(body=parts):
                for part in parts:
                    self.write(scope, part)
            case IfThenElse(condition=condition, then_case=then_case, else_case=None):
                with f.when(value(scope.fresh(), condition)):
                    self.write(scope, then_case)
            case IfThenElse(condition=condition, then_case=then_case, else_case=else_case):
                assert else_case is not None
                with f.either(value(scope.fresh(), condition)) as (then, otherwise):
                    with then:
                        self.write(scope, then_case)
                    with otherwise:
                        self.write(scope, else_case)
            case TirBlock():
                self._block(scope, stmt)
            case TensorIntrinsic(name=name, buffers=buffers, scalars=scalars):
                scope = scope.fresh()
                pointers = [
                    address(scope, b, [evaluate(scope, i) for i in at]) for b, at in buffers
                ]
                f.call(name, *pointers, *(value(scope, s) for s in scalars))
            case For(kind="vectorized"):
                self._vectorized(scope, stmt)
            case For() if self.pool is not None and id(stmt) in self.nests:
                self._shared(scope, self.nests[id(stmt)], self.pool)
            case For():
                self._loop(scope, stmt)

    def _block(self, scope: Scope, block: TirBlock) -> None:
        for axis in block.axes:
            scope = scope.with_variable(axis.var, evaluate(scope.fresh(), axis.binding))
        if block.init is not None:
            self.write(scope, guarded_init(block, block.init))
        self.write(scope, block.body)

    def _vectorized(self, scope: Scope, loop: For) -> None:
        init, rest = split_init(loop)
        if init is not None:
            self.write(scope, init)
        if not vectorized(scope, rest, self.target, self.write):
            self._loop(scope, rest)

    def _shared(self, scope: Scope, nest: Nest, pool: Value) -> None:
        task = Task(scope, nest)
        with room_for(task.scope.frame, private_buffers(nest.body)):
            task.turns(_Writer(task.scope.frame, self.target).write)
        task.finish()
        task.run(pool)

    def _loop(self, scope: Scope, loop: For) -> None:
        extent = _scalar(evaluate(scope.fresh(), loop.extent))
        init = init_without_turns(loop)
        if init is not None and not isinstance(extent, int):
            with self.frame.f.when(self.frame.f.compare("<", extent, 1)):
                self.write(scope, init)
        elif init is not None and extent == 0:
            self.write(scope, init)
        copies = self.copies * extent if isinstance(extent, int) else 0
        if loop.kind == "unrolled" and isinstance(extent, int) and copies <= MOST_COPIES:
            outside, self.copies = self.copies, max(1, copies)
            for turn in range(extent):
                self.write(scope.with_variable(loop.var, turn), loop.body)
            self.copies = outside
        elif extent == 1:
            self.write(scope.with_variable(loop.var, 0), loop.body)
        else:
            with self.frame.f.loop(0, extent) as turns:
                self.write(scope.with_variable(loop.var, turns.index), loop.body)


def _scalar(index: Index) -> int | Value:
    assert not isinstance(index, Ramp | Repeated)
    return index
