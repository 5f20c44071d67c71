"""Convolutions and their epilogues: the schedule is selected by the sizes.

Data is read with channels last, and copied to that layout otherwise.  Loops at the start transform
the weight to the form that the schedule multiplies with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.lower.schedule.conv.bands import by_bands, is_faster, sees_planes
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.depthwise import (
    by_channels,
    by_taps,
    is_depthwise,
)
from relax_egraph.lower.schedule.conv.images import are_large, of_image
from relax_egraph.lower.schedule.conv.joined import joined
from relax_egraph.lower.schedule.conv.match import match_convolution
from relax_egraph.lower.schedule.conv.minimal_filters import Filter
from relax_egraph.lower.schedule.conv.packing import packed
from relax_egraph.lower.schedule.conv.padded import with_padding
from relax_egraph.lower.schedule.conv.parts import FLOAT_ZERO, Source, channels_last
from relax_egraph.lower.schedule.conv.phases import by_phases
from relax_egraph.lower.schedule.conv.planes import by_planes, sees_lines
from relax_egraph.lower.schedule.conv.positions import by_positions, sees_positions
from relax_egraph.lower.schedule.conv.results import Results
from relax_egraph.lower.schedule.conv.rows import Target, by_rows
from relax_egraph.lower.schedule.conv.subsample import is_subsampling, subsample
from relax_egraph.lower.schedule.conv.winograd import by_tiles, fastest, transformed
from relax_egraph.lower.schedule.inline import inline
from relax_egraph.lower.schedule.loops import around, collapse, store_loops
from relax_egraph.lower.schedule.matmul import follows, tiles
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.product import match_product
from relax_egraph.lower.schedule.scheduled import Scheduled, assemble, constant_inputs
from relax_egraph.lower.schedule.stages import Axis, Stage, computed_from
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import PrimFunc, Stmt, seq

TOLERANCE = "tolerance"
"""The attribute of a loop function for the tolerated error of results, relative to their size."""

FILTER = "filter"
"""The attribute of a scheduled function that names the one of `minimal_filters` it uses."""

FEWEST_COLUMNS = 256
"""The minimal adjacent positions; with fewer, features are the better columns of a product."""


def apply(function: PrimFunc, stages: Sequence[Stage]) -> Scheduled | None:
    """The schedule of `function` if it is one convolution and maps of it of the same shape.

    A convolution that is merely a matrix product is left to another schedule.
    """
    parts = _parts(function, stages)
    if parts is None or _is_product(parts.c, parts.rest):
        return None
    c, rest, names = parts.c, parts.rest, Names.beside(function)
    images: tuple[Axis, ...] = ()
    if are_large(c) and _is_copied(c):
        axis, c, rest = of_image(c, rest, names)
        images = (axis,)
    tolerance = function.attrs.get(TOLERANCE, 0.0)
    assert isinstance(tolerance, float)
    is_constant = _is_constant(c.weight.buffer, function, parts.before)
    filter = fastest(c, is_constant=is_constant, tolerance=tolerance)
    is_output = any(c.stage.buffer is b for b in function.outputs)
    loops = _loops(c, rest, filter, names, is_constant=is_constant, is_output=is_output)
    if filter:
        function = replace(function, attrs={**function.attrs, FILTER: filter.name})
    before = [store_loops((s,), names, "parallel") for s in parts.before]
    nests = [around(images, seq(*loops.nests))] if images else loops.nests
    return assemble(function, "conv", [*before, *loops.prepared, *nests], loops.allocs)


@dataclass(frozen=True, slots=True)
class _Loops:
    """The nests of a convolution, and the nests that prepare its weight."""

    prepared: Sequence[Stmt]
    nests: Sequence[Stmt]
    allocs: Sequence[Buffer]


def _loops(
    c: Convolution,
    rest: tuple[Stage, ...],
    filter: Filter | None,
    names: Names,
    *,
    is_constant: bool,
    is_output: bool,
) -> _Loops:
    """The loops of the fastest schedule for `c`; `filter` is the fastest minimal filter, if any."""
    bare = replace(c.stage, value=FLOAT_ZERO, reduction=None)
    results = Results(bare, c.feature.var, rest, is_output, {})
    copies: list[Stmt] = []
    allocs: list[Buffer] = []
    if is_subsampling(c):
        c, copy = subsample(c, names)
        copies, allocs = [copy], [c.data]
        if _is_product(c, rest):
            return _Loops((), [copy, tiles(c.stage, rest, names, is_output=is_output)], allocs)
    if sees_positions(c):
        weight, prepare, nest = by_positions(c, results, names)
        return _Loops([prepare], [*copies, nest], [*allocs, weight])
    if is_product := not (c.is_transposed or is_depthwise(c) or filter):
        c = joined(c)
    if is_product and is_faster(c) and sees_planes(c):
        weight, prepare = packed(c, names, in_blocks=not is_constant, as_planes=True)
        return _Loops([prepare], [by_bands(c, Source.of(c), weight, results, names)], [weight])
    if sees_lines(c, results):
        return _Loops((), [by_planes(c, results, names)], ())
    if is_depthwise(c) and not c.is_transposed:
        source, nests = Source.of(c), ()
        is_padded = not source.channels_last
        if is_padded:
            c, source, nests = with_padding(c, names)
            allocs.append(source.buffer)
        weights, prepared = by_taps(c, names, is_padded=is_padded)
        nest = by_channels(c, source, weights, results, names)
        return _Loops(prepared, [*copies, *nests, nest], [*allocs, *weights.buffers])
    if c.is_transposed:
        nests, phase_buffers = by_phases(c, results, names)
        return _Loops((), [*copies, *nests], [*allocs, *phase_buffers])
    source, copy = channels_last(c, names)
    if copy is not None:
        copies.append(copy)
        allocs.append(source.buffer)
    if filter:
        weight, prepare = transformed(c, filter, names)
        nest = by_tiles(c, filter, source, weight, results, names)
    elif is_faster(c):
        weight, prepare = packed(c, names, in_blocks=not is_constant)
        nest = by_bands(c, source, weight, results, names)
    else:
        weight, prepare = packed(c, names, in_blocks=not is_constant)
        merged = collapse(c.positions, [bare, *rest])
        of_rows = replace(results, values=merged.values)
        nest = by_rows(c, source, [Target(weight, of_rows)], merged, names)
    return _Loops([prepare], [*copies, nest], [*allocs, weight])


def _is_copied(c: Convolution) -> bool:
    """Whether the data of `c` is copied to another layout first."""
    in_order = Source.of(c).channels_last or (is_faster(c) and sees_planes(c)) or sees_positions(c)
    return not c.is_transposed and not in_order


@dataclass(frozen=True, slots=True)
class _Parts:
    """A convolution, the stages before it, and the stages that follow it."""

    c: Convolution
    before: tuple[Stage, ...]
    rest: tuple[Stage, ...]


def _parts(function: PrimFunc, stages: Sequence[Stage]) -> _Parts | None:
    sums = [s for s in stages if s.reduction]
    match = match_convolution(sums[0], stages) if len(sums) == 1 else None
    if match is None:
        return None
    kept = [load.buffer for load in loads(sums[0].value)]
    stages = inline(stages, (*function.outputs, *kept, match.data, match.stage.buffer))
    source = next(s for s in stages if s.buffer is match.stage.buffer)
    c = match_convolution(source, stages)
    assert c is not None, "inlining keeps its operands"
    rest = computed_from(source, stages)
    if not all(follows(s, source, rest) for s in rest):
        return None
    before = [s for s in stages if s is not source and s not in rest]
    read = {c.data, c.weight.buffer, *function.outputs}
    read |= {load.buffer for s in (*before, *rest) for load in loads(s.value)}
    return _Parts(c, tuple(s for s in before if s.buffer in read), rest)


def _is_constant(buffer: Buffer, function: PrimFunc, before: Sequence[Stage]) -> bool:
    """Whether `buffer` depends on constants only."""
    constants = {*constant_inputs(function)}
    for stage in before:
        if all(load.buffer in constants for load in loads(stage.value)):
            constants.add(stage.buffer)
    return buffer in constants


def _is_product(c: Convolution, rest: Sequence[Stage]) -> bool:
    """Whether `c`, which then has 1×1 windows, runs better as a matrix product."""
    product = match_product(c.stage, rest)
    if product is None or any(w.stride != 1 for w in c.windows):
        return False
    columns = product.column.extent
    features_last = c.stage.indices[-1] is c.feature.var
    return features_last or not isinstance(columns, int) or columns >= FEWEST_COLUMNS
