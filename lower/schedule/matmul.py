"""Products of matrices: blocks by the micro-kernel ``gemm_tile``, the epilogue on the hot block.

The output is cut into blocks of 96 rows by 64 columns.  A block is computed over the whole depth
into a local buffer, then what follows the product is computed from it into the outputs.  With
nothing to follow, the block goes to the output itself.  A right operand that is no constant is
read where it is, or copied to panels if it is large and serves many rows, or streamed for one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.epilogue import Epilogue
from relax_egraph.lower.schedule.gemv import single_row
from relax_egraph.lower.schedule.in_place import in_place
from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.loops import store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.packed import Panels, by_packed, panels_of
from relax_egraph.lower.schedule.panels import by_panels
from relax_egraph.lower.schedule.product import Product, match_contraction, widened_late
from relax_egraph.lower.schedule.scheduled import (
    Prepared,
    Scheduled,
    constant_inputs,
    finished,
)
from relax_egraph.lower.schedule.stages import Stage, computed_from
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, from_dim
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import IfThenElse, PrimFunc, Stmt

FEWEST_ROWS = 192
"""How many rows a panel has to serve to be worth the copy."""

LARGEST_IN_PLACE = 1 << 19
"""How many elements the right operand may have to be read where it is: 2 MiB."""

LARGEST_BY_BLOCKS = 1 << 17
"""How many it may have for a single row to run by blocks: 512 KiB, which stay in the cache."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one product, and maps of it of the same shape.

    What does not need the product, and is not cheap enough to be inlined, is computed before.  A
    constant right operand is packed; the attribute ``packed`` is then the number of the parameter
    that holds it, the rows, the columns and the width of a strip.
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
        return finished(function, "matmul", [*before, nest])
    right = p.b.buffer
    packed = Buffer(right.name, panels.shape, right.dtype)
    epilogue = Epilogue(p, parts.rest, parts.is_output)
    nest = by_packed(epilogue, panels, packed, names)
    body = [*before, Prepared((right,), (packed,), panels), nest]
    result = finished(function, "matmul", body)
    number = result.function.params.index(packed)
    attrs = {"packed": (number, panels.depth, panels.columns, panels.width)}
    return result.with_attrs(attrs)


def _panels(function: PrimFunc, parts: "_Parts", p: Product) -> Panels | None:
    """How the right operand is packed: a constant that is read by the product `p` alone."""
    if p.over or p.b.buffer not in constant_inputs(function):
        return None
    reads = [r for s in (*parts.before, parts.product, *parts.rest) for r in loads(s.value)]
    return panels_of(p) if sum(r.buffer is p.b.buffer for r in reads) == 1 else None


@dataclass(frozen=True, slots=True)
class _Parts:
    """A product, the stages before it, and those that follow it element by element."""

    before: tuple[Stage, ...]
    product: Stage
    rest: tuple[Stage, ...]
    is_output: bool


def _parts(function: PrimFunc, stages: Sequence[Stage]) -> _Parts | None:
    stages = widened_late(stages, function.outputs)
    products = [s for s in stages if match_contraction(s)]
    if len(products) != 1:
        return None
    kept = [load.buffer for load in loads(products[0].value)]
    stages = inline(stages, (*function.outputs, *kept, products[0].buffer))
    first = next(s for s in stages if s.buffer is products[0].buffer)
    rest = computed_from(first, stages)
    before = tuple(s for s in stages if s is not first and s not in rest)
    if any(s.reduction for s in before) or not all(follows(s, first, rest) for s in rest):
        return None
    is_output = any(first.buffer is b for b in function.outputs)
    return _Parts(before, first, rest, is_output)


def follows(stage: Stage, product: Stage, rest: Sequence[Stage]) -> bool:
    """Whether `stage` can be computed block by block, with `product` and the stages of `rest`."""
    return (
        stage.reduction is None
        and stage.axes == product.axes
        and all(
            r.indices == stage.indices for c in (product, *rest) for r in reads_of(stage, c.buffer)
        )
    )


def tiles(product: Stage, rest: Sequence[Stage], names: Names, *, is_output: bool) -> Stmt:
    """`product`, and the stages of `rest` that follow it, in one nest over blocks.

    `is_output` says whether the product itself is needed too.
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
    is_row = _both(_is_one(rows), _exceeds(elements, LARGEST_BY_BLOCKS))
    is_large = _both(_exceeds(rows, FEWEST_ROWS - 1), _exceeds(elements, LARGEST_IN_PLACE))
    return _choice(
        is_row,
        lambda: single_row(epilogue, names),
        lambda: _choice(
            is_large, lambda: by_panels(epilogue, names), lambda: in_place(epilogue, names)
        ),
    )


# --- what is known of sizes ---------------------------------------------------------------

Known = bool | TirExpr
"""Whether something holds: an expression if sizes decide it at run time."""


def _choice(condition: Known, yes: Callable[[], Stmt], no: Callable[[], Stmt]) -> Stmt:
    if isinstance(condition, bool):
        return yes() if condition else no()
    return IfThenElse(condition, yes(), no())


def _both(a: Known, b: Known) -> Known:
    if isinstance(a, bool) or isinstance(b, bool):
        return a and b if isinstance(a, bool) else b and a
    return Binary("and", a, b)


def _exceeds(extent: Dim, number: int) -> Known:
    if isinstance(extent, int):
        return extent > number
    return Binary(">", from_dim(extent), Imm(number, "int64"))


def _is_one(extent: Dim) -> Known:
    if isinstance(extent, int):
        return extent == 1
    return Binary("==", from_dim(extent), Imm(1, "int64"))
