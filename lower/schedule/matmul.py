"""Matrix products: blocks by the micro-kernel ``gemm_tile``, with the epilogue on the hot block.

The output is cut into blocks of 96 rows by 64 columns.  A block is computed over the whole depth
into a local buffer, from which the epilogue computes the outputs; without an epilogue, the block is
computed in the output.  A right operand that is not constant is read in place, or copied to panels
if it is large and used by many rows, or streamed for few rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import copied_from, streamed_rows
from relax_egraph.lower.schedule.epilogue import Epilogue
from relax_egraph.lower.schedule.gemv import few_rows
from relax_egraph.lower.schedule.in_place import in_place
from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.loops import store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.packed import Panels, by_packed, panels_of
from relax_egraph.lower.schedule.panels import by_panels
from relax_egraph.lower.schedule.product import Product, match_contraction, with_narrow_operands
from relax_egraph.lower.schedule.scheduled import (
    Prepared,
    Scheduled,
    assemble,
    constant_inputs,
)
from relax_egraph.lower.schedule.stages import Stage, computed_from
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, from_dim
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import IfThenElse, PrimFunc, Stmt

LARGEST_BY_BLOCKS = 1 << 17
"""The maximal elements of a right operand, 512 KiB, for which few rows run by blocks."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one product and maps of it of the same shape.

    Other stages that are too expensive to be inlined are computed before.  A constant right operand
    is packed; the attribute ``packed`` then holds the number of its parameter, the rows, the
    columns and the width of a strip.
    """
    parts = _parts(function, stages)
    if parts is None:
        return None
    names = Names.beside(function)
    before = [store_loops((s,), names, "parallel") for s in parts.before]
    p = match_contraction(parts.product, parts.rest)
    panels = p and _panels(function, parts, p)
    if p is None or panels is None:
        nest = tiles(parts.product, parts.rest, names, is_output=parts.is_output)
        return assemble(function, "matmul", [*before, nest])
    right = p.b.buffer
    packed = Buffer(right.name, panels.shape, right.dtype)
    epilogue = Epilogue(p, parts.rest, parts.is_output)
    nest = by_packed(epilogue, panels, packed, names)
    body = [*before, Prepared((right,), (packed,), panels), nest]
    result = assemble(function, "matmul", body)
    number = result.function.params.index(packed)
    attrs = {"packed": (number, panels.depth, panels.columns, panels.width)}
    return result.with_attrs(attrs)


def _panels(function: PrimFunc, parts: "_Parts", p: Product) -> Panels | None:
    """The packed form of the right operand, if it is a constant that only the product `p` reads."""
    if p.over or p.b.buffer not in constant_inputs(function):
        return None
    reads = [r for s in (*parts.before, parts.product, *parts.rest) for r in loads(s.value)]
    return panels_of(p) if sum(r.buffer is p.b.buffer for r in reads) == 1 else None


@dataclass(frozen=True, slots=True)
class _Parts:
    """A product, the stages before it, and the stages that follow it element by element."""

    before: tuple[Stage, ...]
    product: Stage
    rest: tuple[Stage, ...]
    is_output: bool


def _parts(function: PrimFunc, stages: Sequence[Stage]) -> _Parts | None:
    stages = with_narrow_operands(stages, function.outputs)
    products = [s for s in stages if match_contraction(s)]
    if len(products) != 1:
        return None
    kept = [load.buffer for load in loads(products[0].value)]
    stages = inline(stages, (*function.outputs, *kept, products[0].buffer))
    product = next(s for s in stages if s.buffer is products[0].buffer)
    rest = computed_from(product, stages)
    before = tuple(s for s in stages if s is not product and s not in rest)
    if any(s.reduction for s in before) or not all(follows(s, product, rest) for s in rest):
        return None
    is_output = any(product.buffer is b for b in function.outputs)
    return _Parts(before, product, rest, is_output)


def follows(stage: Stage, product: Stage, rest: Sequence[Stage]) -> bool:
    """Whether `stage` can be computed block by block with `product` and the stages `rest`."""
    return (
        stage.reduction is None
        and stage.axes == product.axes
        and all(
            r.indices == stage.indices for c in (product, *rest) for r in reads_of(stage, c.buffer)
        )
    )


def tiles(product: Stage, rest: Sequence[Stage], names: Names, *, is_output: bool) -> Stmt:
    """`product` and the stages `rest` that follow it, in one nest over blocks.

    `is_output` states whether the product itself is stored, too.
    """
    p = match_contraction(product, rest)
    assert p is not None, f"{product.name} is no product"
    epilogue = Epilogue(p, tuple(rest), is_output)
    if p.b_column != 1:
        return by_panels(epilogue, names)
    if p.over:
        return in_place(epilogue, names)
    rows = p.row.extent if p.row else 1
    elements = dims.mul(p.depth.extent if p.depth else 1, p.column.extent)
    most = streamed_rows(scheduled_machine())
    is_few = _both(_at_most(rows, most), _exceeds(elements, LARGEST_BY_BLOCKS))
    fewest_rows, most_elements = copied_from(scheduled_machine())
    is_large = _both(_exceeds(rows, fewest_rows - 1), _exceeds(elements, most_elements))
    return _choice(
        is_few,
        lambda: few_rows(epilogue, most, names),
        lambda: _choice(
            is_large, lambda: by_panels(epilogue, names), lambda: in_place(epilogue, names)
        ),
    )


# --- conditions on sizes --------------------------------------------------------------------

Condition = bool | TirExpr
"""The truth of a condition: an expression if it depends on run-time sizes."""


def _choice(condition: Condition, yes: Callable[[], Stmt], no: Callable[[], Stmt]) -> Stmt:
    if isinstance(condition, bool):
        return yes() if condition else no()
    return IfThenElse(condition, yes(), no())


def _both(a: Condition, b: Condition) -> Condition:
    if isinstance(a, bool) or isinstance(b, bool):
        return a and b if isinstance(a, bool) else b and a
    return Binary("and", a, b)


def _exceeds(extent: Dim, number: int) -> Condition:
    if isinstance(extent, int):
        return extent > number
    return Binary(">", from_dim(extent), Imm(number, "int64"))


def _at_most(extent: Dim, number: int) -> Condition:
    if isinstance(extent, int):
        return extent <= number
    return Binary("<=", from_dim(extent), Imm(number, "int64"))
