"""Convolutions with what follows them: which schedule runs one is decided by its sizes.

Data is read with its channels last, and copied so if it is not.  The weight is brought into the
form that the schedule multiplies with by loops that come first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.lower.schedule.conv.bands import by_bands, is_faster, joined
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.depthwise import (
    by_channels,
    by_taps,
    has_many_edges,
    is_depthwise,
    padded,
)
from relax_egraph.lower.schedule.conv.match import match_convolution
from relax_egraph.lower.schedule.conv.parts import NOTHING, channels_last
from relax_egraph.lower.schedule.conv.phases import by_phases
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.conv.rows import Target, by_rows, packed
from relax_egraph.lower.schedule.conv.winograd import by_tiles, fastest, transformed
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.loops import collapse, store_loops
from relax_egraph.lower.schedule.matmul import follows
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import match_product
from relax_egraph.lower.schedule.scheduled import finished
from relax_egraph.lower.schedule.stages import Stage, computed_from
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc

TOLERANCE = "tolerance"
"""The attribute of a loop function that says how far results may err: 1e-4 of their mean size."""

FEWEST_COLUMNS = 256
"""With fewer positions side by side, features are the better columns of a product."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> PrimFunc | None:
    """The schedule of `function` if it is one convolution, and maps of it of the same shape.

    A convolution that is no more than a product of matrices is not.
    """
    parts = _parts(function, stages)
    if parts is None or _is_product(parts.c, parts.rest):
        return None
    c, names = parts.c, Names.beside(function)
    source, copy = channels_last(c, names)
    before = [store_loops((s,), names, "parallel") for s in parts.before]
    copies = [] if copy is None else [copy]
    allocs = () if copy is None else (source.buffer,)
    bare = replace(c.stage, value=NOTHING, reduction=None)
    merged = collapse(c.positions, [bare, *parts.rest])
    is_output = any(c.stage.buffer is b for b in function.outputs)
    is_constant = _is_constant(c.weight.buffer, function, parts.before)
    tolerance = function.attrs.get(TOLERANCE, 0.0)
    assert isinstance(tolerance, float)
    results = Results(bare, c.feature.var, parts.rest, is_output, {})
    if c.is_transposed:
        nests, made = by_phases(c, source, results, names)
        return finished(function, "conv", [*before, *copies, *nests], (*allocs, *made))
    if is_depthwise(c):
        weight, prepare = by_taps(c, names)
        if has_many_edges(c):
            c, source, pad = padded(c, source, names)
            copies.append(pad)
            allocs = (*allocs, source.buffer)
        nest = by_channels(c, source, weight, results, names)
    elif filter := fastest(c, is_constant=is_constant, tolerance=tolerance):
        weight, prepare = transformed(c, filter, names)
        nest = by_tiles(c, filter, source, weight, results, names)
    else:
        c = joined(c)
        weight, prepare = packed(c, names)
        if is_faster(c):
            nest = by_bands(c, source, weight, results, names)
        else:
            of_rows = replace(results, values=merged.values)
            nest = by_rows(c, source, [Target(weight, of_rows)], merged, names)
    return finished(function, "conv", [*before, prepare, *copies, nest], (*allocs, weight))


@dataclass(frozen=True, slots=True)
class _Parts:
    """A convolution, what is computed before it, and what follows it."""

    c: Convolution
    before: tuple[Stage, ...]
    rest: tuple[Stage, ...]


def _parts(function: PrimFunc, stages: Sequence[Stage]) -> _Parts | None:
    sums = [s for s in stages if s.reduction]
    found = match_convolution(sums[0], stages) if len(sums) == 1 else None
    if found is None:
        return None
    kept = [load.buffer for load in loads(sums[0].value)]
    stages = inline(stages, (*function.outputs, *kept, found.data, found.stage.buffer))
    first = next(s for s in stages if s.buffer is found.stage.buffer)
    c = match_convolution(first, stages)
    assert c is not None, "what it reads was kept"
    rest = computed_from(first, stages)
    if not all(follows(s, first, rest) for s in rest):
        return None
    before = [s for s in stages if s is not first and s not in rest]
    read = {c.data, c.weight.buffer, *function.outputs}
    read |= {load.buffer for s in (*before, *rest) for load in loads(s.value)}
    return _Parts(c, tuple(s for s in before if s.buffer in read), rest)


def _is_constant(buffer: Buffer, function: PrimFunc, before: Sequence[Stage]) -> bool:
    """Whether `buffer` is computed of nothing but constants."""
    numbers = function.attrs.get("constant_inputs", ())
    assert isinstance(numbers, tuple)
    known = {b for k, b in enumerate(function.inputs) if k in numbers}
    for stage in before:
        if all(load.buffer in known for load in loads(stage.value)):
            known.add(stage.buffer)
    return buffer in known


def _is_product(c: Convolution, rest: Sequence[Stage]) -> bool:
    """Whether `c`, which then sees no neighbours, is better run as a product of matrices."""
    product = match_product(c.stage, rest)
    if product is None or any(w.stride != 1 for w in c.windows):
        return False
    columns = product.column.extent
    features_last = c.stage.indices[-1] is c.feature.var
    return features_last or not isinstance(columns, int) or columns >= FEWEST_COLUMNS
