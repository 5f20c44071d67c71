"""Strided 1×1 convolutions: subsample the data, then multiply.

The sample contains the data under the windows, and zeros of the padding.  Its convolution has
stride 1 and no padding, and is a matrix product.
"""

from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.conv.parts import FLOAT_ZERO, Source, all_of, tests
from relax_egraph.lower.schedule.loops import ZERO, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import Binary, Buffer, Select, TirExpr
from relax_egraph.tir.stmt import Stmt


def is_subsampling(c: Convolution) -> bool:
    """Whether `c` has strided 1×1 windows along lines with adjacent places."""
    return (
        c.groups == 1
        and Source.of(c).places_last
        and all(w.size == 1 for w in c.windows)
        and c.windows[-1].stride > 1
    )


def subsample(c: Convolution, names: Names) -> tuple[Convolution, Stmt]:
    """`c` on a sample of its data, and the loops that copy the sample."""
    axes = (c.batch, Axis(c.channel, c.channels), *c.positions)
    sample = Buffer(names.fresh("thin"), tuple(a.extent for a in axes), "float32")
    at = tuple(a.var for a in axes)
    batch, channel, *positions = at
    places = [w.seen(p, ZERO) for w, p in zip(c.windows, positions, strict=True)]
    value: TirExpr = Source.of(c).at(batch, places, channel)
    if outside := [t for w, p in zip(c.windows, places, strict=True) for t in _padding(w, p)]:
        value = Select(all_of(outside), value, FLOAT_ZERO, lazy=True)
    stage = Stage("thin", sample, axes, at, value)
    windows = tuple(replace(w, stride=1, before=0, extent=w.position.extent) for w in c.windows)
    image = ZERO if c.batch.extent == 1 else batch
    product = replace(c.stage, value=Binary("*", sample[(image, *at[1:])], c.weight))
    return (
        replace(c, stage=product, data=sample, windows=windows, image=ZERO),
        store_loops((stage,), names, "parallel"),
    )


def _padding(w: Window, place: TirExpr) -> list[TirExpr]:
    """The conditions that `place` is in data, without those that all positions meet."""
    below, above = tests(place, w.extent)
    end = dims.sub(dims.mul(w.position.extent, w.stride), w.stride - 1 + w.before)
    conditions = [] if w.before <= 0 else [below]
    return conditions if dims.prove_ge(w.extent, end) else [*conditions, above]
