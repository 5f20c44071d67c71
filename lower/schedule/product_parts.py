"""The stages of a function around its one matrix product."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.packed import Panels, panels_of
from relax_egraph.lower.schedule.product import Product, match_contraction, with_narrow_operands
from relax_egraph.lower.schedule.scheduled import Prepared, Scheduled, assemble, constant_inputs
from relax_egraph.lower.schedule.stages import Stage, computed_from
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc, Stmt


@dataclass(frozen=True, slots=True)
class Parts:
    """A product, the maps before it, and the stages that depend on it.

    `is_output` states whether the product itself is stored, too.
    """

    before: tuple[Stage, ...]
    product: Stage
    rest: tuple[Stage, ...]
    is_output: bool


def parts_of(function: PrimFunc, stages: Sequence[Stage], *, hoist: bool = False) -> Parts | None:
    """The parts of `function` if it has one product, which depends on maps alone.

    Stages are inlined as `inline` does it with `hoist`.
    """
    stages = with_narrow_operands(stages, function.outputs)
    products = [s for s in stages if match_contraction(s)]
    if len(products) != 1:
        return None
    kept = [load.buffer for load in loads(products[0].value)]
    keep = (*function.outputs, *kept, products[0].buffer)
    stages = inline(stages, keep, hoist=hoist)
    product = next(s for s in stages if s.buffer is products[0].buffer)
    rest = computed_from(product, stages)
    before = tuple(s for s in stages if s is not product and s not in rest)
    if any(s.reduction for s in before):
        return None
    is_output = any(product.buffer is b for b in function.outputs)
    return Parts(before, product, rest, is_output)


@dataclass(frozen=True, slots=True)
class PackedOperand:
    """A constant right operand `source`, packed to `panels` in `buffer`."""

    source: Buffer
    buffer: Buffer
    panels: Panels


def packed_operand(function: PrimFunc, parts: Parts, p: Product) -> PackedOperand | None:
    """The packed right operand, if it is a constant that only the product `p` reads."""
    right = p.b.buffer
    if p.over or right not in constant_inputs(function):
        return None
    reads = [r for s in (*parts.before, parts.product, *parts.rest) for r in loads(s.value)]
    panels = panels_of(p) if sum(r.buffer is right for r in reads) == 1 else None
    return panels and PackedOperand(right, Buffer(right.name, panels.shape, right.dtype), panels)


def assemble_product(
    function: PrimFunc,
    anchor: str,
    nests: Sequence[Stmt],
    right: PackedOperand | None,
    allocs: Sequence[Buffer] = (),
) -> Scheduled:
    """`function` with `nests`, which use `allocs` and the packed operand `right`, if there is one.

    The attribute ``packed`` then holds the number of its parameter, the rows, the columns and the
    width of a strip.
    """
    if right is None:
        return assemble(function, anchor, nests, allocs)
    panels = right.panels
    prepared = Prepared((right.source,), (right.buffer,), panels)
    result = assemble(function, anchor, [prepared, *nests], allocs)
    number = result.function.params.index(right.buffer)
    return result.with_attrs({"packed": (number, panels.depth, panels.columns, panels.width)})
