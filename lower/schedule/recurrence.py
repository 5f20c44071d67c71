"""Products that a sequential loop repeats, as those of a recurrent layer: by ``gemm_tile``.

The right operand of such a product is an input, and the same in all turns of the loop: it is packed
in strips of columns once, before the loop, or if it is constant, when the program is built.  Every
second turn takes the strips in reverse, since the last ones are still in the cache.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.codegen.stream import ATTRIBUTE as STREAMED
from relax_egraph.lower.intrinsics.gemm import name_of
from relax_egraph.lower.intrinsics.tile_sizes import BLOCK_COLUMNS
from relax_egraph.lower.schedule.cut import Cut, cut
from relax_egraph.lower.schedule.loops import ZERO, around, parallel
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import Product, bound_load, match_contraction
from relax_egraph.lower.schedule.reductions import loops as stage_loops
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble
from relax_egraph.lower.schedule.stages import Axis, Stage, stage_of
from relax_egraph.lower.schedule.strips import Strips, strip_of
from relax_egraph.lower.schedule.tiles import target_of
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import loads, substitute, variables
from relax_egraph.tir.stmt import (
    For,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
    seq,
)


def apply(function: PrimFunc) -> Scheduled | None:
    """The schedule of `function` if a sequential loop in it contains products; the rest stays."""
    writer = _Writer(function.inputs, Names.beside(function))
    body = writer.within(function.body, ())
    if not writer.stages:
        return None
    result = assemble(function, "recurrence", [*writer.packing, body], allocs=writer.packed)
    return result.with_attrs({STREAMED: _streamed(result.function, writer.turns)})


def _streamed(function: PrimFunc, turns: Collection[TirVar]) -> tuple[int, ...]:
    """The numbers of inputs of which each of `turns` reads another part."""
    reads = [r for r in loads(function.body) if not _variables_of(r).isdisjoint(turns)]
    return tuple(k for k, b in enumerate(function.inputs) if any(r.buffer is b for r in reads))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Replaces the products in loops; collects the `packed` operands, and their `packing`.

    `turns` are the variables of the sequential loops around the products.
    """

    inputs: tuple[Buffer, ...]
    names: Names
    packed: list[Buffer] = field(default_factory=list[Buffer])
    packing: list[Stmt] = field(default_factory=list[Stmt])
    turns: list[TirVar] = field(default_factory=list[TirVar])
    stages: list[Stage] = field(default_factory=list[Stage])

    def within(self, stmt: Stmt, outer: tuple[For, ...]) -> Stmt:
        """`stmt`, which is inside of the loops `outer`."""
        match stmt:
            case Seq(body=parts):
                return seq(*(self.within(part, outer) for part in parts))
            case TirBlock(init=None):
                return replace(stmt, body=self.within(stmt.body, outer))
            case For():
                stage = stage_of(stmt) if any(loop.kind == "serial" for loop in outer) else None
                if stage is None:
                    return replace(stmt, body=self.within(stmt.body, (*outer, stmt)))
                self.stages.append(stage)
                product = match_contraction(stage)
                around_b = product and _loops_around(product, outer, self.inputs)
                if product is None or around_b is None:
                    return stage_loops(stage, self.names)
                self.turns.append([loop.var for loop in outer if loop.kind == "serial"][-1])
                return self._product(product, around_b)
            case _:
                return stmt

    def _product(self, p: Product, around_b: tuple[Axis, ...]) -> Stmt:
        """The product `p` in blocks of columns; its right operand depends on loops `around_b`."""
        packed = self._pack(p, around_b)
        columns, block = self._blocks(p.column.extent)
        corner = {**p.point(ZERO, columns.start), **p.at_depth(ZERO)}
        width = packed.shape[-1]
        assert isinstance(width, int)
        strip = block * (BLOCK_COLUMNS // width)
        b = packed[*(axis.var for axis in around_b), strip, 0, 0]
        corners = (bound_load(p.a, corner), b, target_of(p, corner))
        depth = from_dim(p.depth.extent if p.depth else 1)
        line = Strips(p.depth.extent if p.depth else 1, width, packed.dtype).line
        strides = map(from_dim, (p.a_row, p.a_step, width, line, p.c_row))
        size = (from_dim(p.row.extent if p.row else 1), columns.count, depth)
        places = tuple((load.buffer, load.indices) for load in corners)
        call = TensorIntrinsic(name_of(packed.dtype), places, (*strides, *size, ZERO, ZERO))
        return around(columns.blocks, call)

    def _blocks(self, extent: Dim) -> tuple[Cut, TirExpr]:
        """The columns in blocks, and the number of a block: they are reversed in every odd turn."""
        columns = cut(extent, BLOCK_COLUMNS, "jo", self.names)
        if not columns.blocks:
            return columns, ZERO
        (block,) = columns.blocks
        last = from_dim(dims.sub(block.extent, 1))
        number = block.var + self.turns[-1] % 2 * (last - block.var * 2)
        moved = {block.var: number}
        start, count = (substitute(e, moved) for e in (columns.start, columns.count))
        return replace(columns, start=start, count=count), number

    def _pack(self, p: Product, around_b: tuple[Axis, ...]) -> Buffer:
        """The right operand of `p` in strips, each contiguous; a partial one ends with garbage."""
        outer, renamed = self.names.renamed(around_b, "d")
        width = strip_of(p.b.buffer.dtype)
        columns = cut(p.column.extent, width, "jo", self.names)
        strips = columns.blocks or (Axis(self.names.var("jo"), 1),)
        depth = Axis(self.names.var("k"), p.depth.extent if p.depth else 1)
        extents = (*(axis.extent for axis in (*outer, *strips, depth)), width)
        packed = Buffer(self.names.fresh("packed"), extents, p.b.buffer.dtype)
        j = self.names.var("j")
        places = {**renamed, p.column.var: columns.start + j, **p.at_depth(depth.var)}
        at = tuple(axis.var for axis in (*outer, *strips, depth))
        copy = Store(packed, (*at, j), bound_load(p.b, places))
        row = around((depth,), For(j, columns.count, "vectorized", copy))
        self.packed.append(packed)
        self.packing.append(parallel((*outer, *strips), row))
        return packed


def _variables_of(load: BufferLoad) -> frozenset[TirVar]:
    """The variables in the indices of `load`."""
    return frozenset[TirVar]().union(*map(variables, load.indices))


def _loops_around(
    p: Product, outer: tuple[For, ...], inputs: tuple[Buffer, ...]
) -> tuple[Axis, ...] | None:
    """The loops of `outer` that the right operand of `p` depends on, if it can be packed.

    It is a matrix of constant extents in an input, and another loop repeats the product.
    """
    used = _variables_of(p.b)
    own = [Axis(loop.var, dim_of(loop.extent) or 0) for loop in outer if loop.var in used]
    extents = [p.column.extent, p.depth.extent if p.depth else 1, *(axis.extent for axis in own)]
    repeats = any(loop.kind == "serial" and loop.var not in used for loop in outer)
    is_matrix = p.b_column == 1 and not p.batch and not p.over
    if not repeats or not is_matrix or not all(isinstance(e, int) and e for e in extents):
        return None
    return tuple(own) if any(p.b.buffer is b for b in inputs) else None
