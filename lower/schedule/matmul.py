"""Products of matrices: tiles by the micro-kernel ``gemm_tile``, the epilogue on the hot tile.

The output is cut into tiles of 6 rows by 64 columns.  A tile is computed over the whole depth
into a local buffer, then what follows the product is computed from it into the outputs.  With
nothing to follow, the tile goes to the output itself.  Large right operands are packed for many
rows, and streamed for one.
"""

from collections.abc import Callable, Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.gemv import single_row
from relax_egraph.lower.schedule.inline import inline, reads_of
from relax_egraph.lower.schedule.loops import store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.panels import by_panels
from relax_egraph.lower.schedule.product import match_product
from relax_egraph.lower.schedule.scheduled import finished
from relax_egraph.lower.schedule.stages import Stage
from relax_egraph.lower.schedule.tiles import Epilogue, Nest, in_place
from relax_egraph.tir.expr import Binary, Imm, TirExpr, from_dim
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import IfThenElse, PrimFunc

FEWEST_ROWS = 48
"""How many rows a panel has to serve to be worth the copy."""

LARGEST_IN_PLACE = 1 << 19
"""How many elements the right operand may have to be read where it is: 2 MiB."""

LARGEST_BY_TILES = 1 << 17
"""How many it may have for a single row to run by tiles: 512 KiB, which stay in the cache."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> PrimFunc | None:
    """The schedule of `function` if it is one product, and maps of it of the same shape.

    What does not need the product, and is not cheap enough to be inlined, is computed before.
    """
    products = [s for s in stages if match_product(s)]
    if len(products) != 1:
        return None
    kept = [load.buffer for load in loads(products[0].value)]
    stages = inline(stages, (*function.outputs, *kept, products[0].buffer))
    first = next(s for s in stages if s.buffer is products[0].buffer)
    rest: list[Stage] = []
    for stage in stages:
        if any(stage.reads(s.buffer) for s in (first, *rest)):
            rest.append(stage)
    before = [s for s in stages if s is not first and s not in rest]
    if any(s.reduction for s in before) or not all(follows(s, first, rest) for s in rest):
        return None
    names = Names.beside(function)
    is_output = any(first.buffer is b for b in function.outputs)
    nests = [store_loops((s,), names) for s in before]
    nest = tiles(first, rest, names, is_output=is_output)
    return finished(function, "matmul", [*nests, nest.body], nest.allocs)


def follows(stage: Stage, product: Stage, rest: Sequence[Stage]) -> bool:
    """Whether `stage` can be computed tile by tile, with `product` and the stages of `rest`."""
    return (
        stage.reduction is None
        and stage.axes == product.axes
        and all(
            r.indices == stage.indices for c in (product, *rest) for r in reads_of(stage, c.buffer)
        )
    )


def tiles(product: Stage, rest: Sequence[Stage], names: Names, *, is_output: bool) -> Nest:
    """`product`, and the stages of `rest` that follow it, in one nest over tiles.

    `is_output` says whether the product itself is needed too.
    """
    p = match_product(product, rest)
    assert p is not None, f"{product.name} is no product"
    epilogue = Epilogue(p, tuple(rest), is_output)
    if p.b_column != 1:
        return by_panels(epilogue, names)
    rows = p.row.extent if p.row else 1
    elements = dims.mul(p.depth.extent if p.depth else 1, p.column.extent)
    is_row = _both(_is_one(rows), _exceeds(elements, LARGEST_BY_TILES))
    is_large = _both(_exceeds(rows, FEWEST_ROWS - 1), _exceeds(elements, LARGEST_IN_PLACE))
    return _choice(
        is_row,
        lambda: Nest(single_row(epilogue, names)),
        lambda: _choice(
            is_large,
            lambda: by_panels(epilogue, names),
            lambda: Nest(in_place(epilogue, names)),
        ),
    )


Known = bool | TirExpr
"""Whether something holds: an expression if sizes decide it at run time."""


def _choice(condition: Known, yes: Callable[[], Nest], no: Callable[[], Nest]) -> Nest:
    if isinstance(condition, bool):
        return yes() if condition else no()
    a, b = yes(), no()
    return Nest(IfThenElse(condition, a.body, b.body), a.allocs + b.allocs)


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
