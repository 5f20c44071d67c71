"""A loop function as stages: one for each tensor it computes, in order.

Schedules work on stages.  A function in another form than nests around one block, each storing
every element of its own buffer once, has no stages and is lowered unchanged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.index import run_on
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    Intrinsic,
    TirExpr,
    TirVar,
    binary,
)
from relax_egraph.tir.rewrite import loads, rewrite, variables
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Seq, Stmt, Store, TirBlock

Combine: TypeAlias = Literal["+", "*", "min", "max"]

_COMBINES = frozenset({"+", "*", "min", "max"})


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop from 0 to `extent`."""

    var: TirVar
    extent: Dim


@dataclass(frozen=True, slots=True)
class Reduction:
    """``buffer[indices] = combine(buffer[indices], value)`` over `axes`, beginning with `init`."""

    axes: tuple[Axis, ...]
    combine: Combine
    init: TirExpr


@dataclass(frozen=True, slots=True)
class Stage:
    """``buffer[indices] = value`` over `axes`; the `value` of a reduction is the term to combine.

    No two iterations of `axes` store to one place, and `value` does not read `buffer`.
    """

    name: str
    buffer: Buffer
    axes: tuple[Axis, ...]
    indices: tuple[TirExpr, ...]
    value: TirExpr
    reduction: Reduction | None = None

    @property
    def sums(self) -> bool:
        """Whether it is a sum that starts at 0."""
        if self.reduction is None or self.reduction.combine != "+":
            return False
        init = self.reduction.init
        return isinstance(init, Imm) and init.value == 0

    @property
    def all_axes(self) -> tuple[Axis, ...]:
        """The spatial axes, then the reduced ones."""
        return self.axes + (self.reduction.axes if self.reduction else ())

    def reads(self, buffer: Buffer) -> bool:
        """Whether the value reads `buffer`."""
        return any(load.buffer is buffer for load in loads(self.value))


def runs(
    stages: Iterable[Stage], joins: Callable[[Stage, Sequence[Stage]], bool]
) -> list[list[Stage]]:
    """`stages` in consecutive runs: a stage that `joins` the current run extends it."""
    result: list[list[Stage]] = []
    for stage in stages:
        if result and joins(stage, result[-1]):
            result[-1].append(stage)
        else:
            result.append([stage])
    return result


def computed_from(source: Stage, stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """The stages of `stages`, in order, that depend on `source`."""
    dependent: list[Stage] = []
    for stage in stages:
        if any(stage.reads(s.buffer) for s in (source, *dependent)):
            dependent.append(stage)
    return tuple(dependent)


def stages_of(function: PrimFunc) -> tuple[Stage, ...] | None:
    """The stages of `function`; ``None`` if it has another form.

    Each stage fills its whole buffer, and reads inputs or buffers filled before.
    """
    filled = {id(b) for b in function.inputs}
    written: set[int] = set()
    stages: list[Stage] = []
    for nest in function.body.body if isinstance(function.body, Seq) else (function.body,):
        stage = stage_of(nest)
        if stage is None or id(stage.buffer) in filled:
            return None
        if any(id(load.buffer) not in filled for load in loads(stage.value)):
            return None
        filled.add(id(stage.buffer))
        written.add(id(stage.buffer))
        stages.append(stage)
    return tuple(stages) if all(id(b) in written for b in function.outputs) else None


def slice_of(nest: Stmt) -> Stage | None:
    """`nest` as a stage if it is around one block with a store, perhaps to a part of a buffer.

    Each index is an axis, an axis plus a loop-invariant term, or loop-invariant.
    """
    nested = _block(nest)
    if nested is None:
        return None
    block, axes = nested
    store = block.body
    assert isinstance(store, Store)
    if block.init is not None or any(b.kind == "reduce" for b in block.axes):
        return None
    free = {a.var for a in axes}
    for index in store.indices:
        terms = (index.a, index.b) if isinstance(index, Binary) and index.kind == "+" else (index,)
        moving = [term for term in terms if variables(term) & {a.var for a in axes}]
        if not moving:
            continue
        if len(moving) > 1 or moving[0] not in free:
            return None
        free.discard(moving[0])
    stage = Stage(block.name, store.buffer, axes, store.indices, store.value)
    return None if free or stage.reads(store.buffer) else stage


def _block(nest: Stmt) -> tuple[TirBlock, tuple[Axis, ...]] | None:
    """The block with a single store in a nest of serial loops, one for each of its axes."""
    loops: dict[TirVar, Dim | None] = {}
    while isinstance(nest, For):
        if nest.kind != "serial":
            return None
        loops[nest.var] = dim_of(nest.extent)
        nest = nest.body
    if not isinstance(nest, TirBlock) or not isinstance(nest.body, Store) or nest.allocs:
        return None
    axes = tuple(_axes(nest.axes, loops))
    if len(axes) != len(nest.axes) or len(loops) != len(axes):
        return None
    return nest, axes


def stage_of(nest: Stmt) -> Stage | None:
    """`nest` as a stage if it is around one block that stores every element of a buffer once."""
    nested = _block(nest)
    if nested is None:
        return None
    nest, axes = nested
    spatial = tuple(a for a, b in zip(axes, nest.axes, strict=True) if b.kind == "spatial")
    reduced = tuple(a for a, b in zip(axes, nest.axes, strict=True) if b.kind == "reduce")
    store = nest.body
    assert isinstance(store, Store)
    point: tuple[TirExpr, ...] = tuple(a.var for a in spatial)
    fills = len(spatial) == len(store.buffer.shape) and all(
        dims.equal(a.extent, d) for a, d in zip(spatial, store.buffer.shape, strict=True)
    )
    if store.indices != point or not fills:
        return None
    if not reduced:
        value = _without_division(store.value)
        stage = Stage(nest.name, store.buffer, spatial, point, value)
        return None if nest.init or stage.reads(store.buffer) else stage
    return _reduction(nest, store, spatial, reduced)


def _axes(axes: tuple[BlockAxis, ...], loops: dict[TirVar, Dim | None]) -> Iterator[Axis]:
    """The axes that run over a whole loop of their own."""
    bound: set[TirVar] = set()
    for axis in axes:
        loop = axis.binding
        extent = dim_of(axis.extent)
        if not isinstance(loop, TirVar) or loop in bound or extent is None:
            return
        runs = loops.get(loop)
        if runs is None or not dims.equal(runs, extent):
            return
        bound.add(loop)
        yield Axis(axis.var, extent)


def _reduction(
    block: TirBlock, store: Store, spatial: tuple[Axis, ...], reduced: tuple[Axis, ...]
) -> Stage | None:
    init = block.init
    if not isinstance(init, Store) or init.buffer is not store.buffer:
        return None
    if init.indices != store.indices or loads(init.value):
        return None
    combined = _combined(store)
    if combined is None:
        return None
    kind, term = combined
    reduction = Reduction(reduced, kind, init.value)
    stage = Stage(
        block.name, store.buffer, spatial, store.indices, _without_division(term), reduction
    )
    return None if stage.reads(store.buffer) else stage


def _combined(store: Store) -> tuple[Combine, TirExpr] | None:
    def is_own(e: TirExpr) -> bool:
        return isinstance(e, BufferLoad) and e.buffer is store.buffer and e.indices == store.indices

    match store.value:
        case Binary(kind=kind, a=a, b=b) if kind in _COMBINES:
            if is_own(a):
                return cast(Combine, kind), b
            if is_own(b):
                return cast(Combine, kind), a
        case Intrinsic(name="fma", args=(a, b, own)) if is_own(own):
            return "+", binary("*", a, b)
        case _:
            pass
    return None


def _without_division(value: TirExpr) -> TirExpr:
    return rewrite(value, lambda e: run_on(e) if isinstance(e, BufferLoad) else e)
