"""Scheduled loop functions to LLVM: what is printed is what runs.

A function ``f`` becomes ``void f(ptr pool, ptr …, i64 …)``: the threads it may use, null for the
caller's alone; its buffers, inputs then outputs; the values of `PrimFunc.symbols`.  An output may
lie where an input of the same extent does if each element is read only to compute the element
that replaces it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.block_init import guarded_init, init_without_turns, split_init
from relax_egraph.lower.check_tir import check
from relax_egraph.lower.codegen_expr import evaluate, value
from relax_egraph.lower.codegen_memory import address, store
from relax_egraph.lower.codegen_vector import vectorized
from relax_egraph.lower.emitter import Function
from relax_egraph.lower.index import Index, Ramp
from relax_egraph.lower.module_text import I8, I64, PTR, IntrinsicEmitter, Module
from relax_egraph.lower.scope import MEMORY_TYPES, Frame, Scope
from relax_egraph.lower.target import Target
from relax_egraph.lower.value import Value
from relax_egraph.tir.expr import Buffer, from_dim
from relax_egraph.tir.rewrite import statements
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

LARGEST_STACK = 1 << 16
"""How many bytes of buffers a kernel keeps on the stack; what is beyond comes from ``malloc``."""

MOST_COPIES = 1024
"""How often unrolled loops may copy a statement; beyond that they stay loops."""

ALIGNMENT = 64


def generate(
    function: PrimFunc, name: str, target: Target, intrinsics: Mapping[str, IntrinsicEmitter]
) -> Module:
    """The module with `function` under `name`; raises `NotLowerable` if it cannot be compiled."""
    check(function, intrinsics)
    module = Module(target)
    params = [PTR, *(PTR for _ in function.params), *(I64 for _ in function.symbols)]
    f = Function(module, name, params)
    _, *args = f.args
    count = len(function.params)
    frame = Frame(f, dict(zip(function.symbols, args[count:], strict=True)))
    frame.pointers.update(zip(function.params, args[:count], strict=True))
    writer = _Writer(frame, target)
    scratch = [*function.allocs, *_allocs(function.body)]
    for buffer in (*function.params, *scratch):
        frame.strides[buffer] = writer.strides(buffer.shape)
    owned = writer.allocate(scratch)
    writer.write(Scope(frame), function.body)
    for pointer in owned:
        f.call("free", pointer)
    f.finish()
    return module


def _allocs(body: Stmt) -> list[Buffer]:
    return [b for s in statements(body) if isinstance(s, TirBlock) for b in s.allocs]


@dataclass(slots=True)
class _Writer:
    """Writes the statements of one function; `copies` is how often unrolled loops copy them."""

    frame: Frame
    target: Target
    copies: int = 1

    # --- buffers ----------------------------------------------------------------------

    def strides(self, shape: Sequence[Dim]) -> tuple[Index, ...]:
        """How many elements apart neighbours are along each axis of a row-major array."""
        return tuple(self._size(dims.product(shape[axis + 1 :])) for axis in range(len(shape)))

    def _size(self, dim: Dim) -> Index:
        return evaluate(Scope(self.frame), from_dim(dim))

    def allocate(self, buffers: Sequence[Buffer]) -> list[Value]:
        """Make room for scratch buffers; returns what is to be freed."""
        f, left, owned = self.frame.f, LARGEST_STACK, list[Value]()
        for buffer in buffers:
            element = MEMORY_TYPES[buffer.dtype]
            count = dims.product(buffer.shape)
            if isinstance(count, int) and count * element.bits // 8 <= left:
                left -= count * element.bits // 8
                self.frame.pointers[buffer] = f.allocate(element, max(1, count))
            else:
                elements = f.index(_scalar(self._size(count)))
                room = elements * (element.bits // 8) + ALIGNMENT
                memory = f.call_value("malloc", PTR, room)
                owned.append(memory)
                number = f.emit(I64, f"ptrtoint {memory} to i64")
                gap = (0 - number) & (ALIGNMENT - 1)
                self.frame.pointers[buffer] = f.address(memory, gap, I8)
        return owned

    # --- statements -------------------------------------------------------------------

    def write(self, scope: Scope, stmt: Stmt) -> None:
        """Write `stmt` on one lane, save for the vectorized loops in it."""
        f = self.frame.f
        match stmt:
            case Store(buffer=buffer, indices=indices, value=stored):
                scope = scope.fresh()
                held = value(scope, stored)
                store(scope, buffer, [evaluate(scope, i) for i in indices], held)
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
            case For():
                self._loop(scope, stmt)

    def _block(self, scope: Scope, block: TirBlock) -> None:
        for axis in block.axes:
            scope = scope.with_variable(axis.var, evaluate(scope.fresh(), axis.binding))
        if block.init is not None:
            self.write(scope, guarded_init(block, block.init))
        self.write(scope, block.body)

    def _vectorized(self, scope: Scope, loop: For) -> None:
        first, rest = split_init(loop)
        if first is not None:
            self.write(scope, first)
        if not vectorized(scope, rest, self.target, self.write):
            self._loop(scope, rest)

    def _loop(self, scope: Scope, loop: For) -> None:
        extent = _scalar(evaluate(scope.fresh(), loop.extent))
        left = init_without_turns(loop)
        if left is not None and not isinstance(extent, int):
            with self.frame.f.when(self.frame.f.compare("<", extent, 1)):
                self.write(scope, left)
        elif left is not None and extent == 0:
            self.write(scope, left)
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
    assert not isinstance(index, Ramp)
    return index
