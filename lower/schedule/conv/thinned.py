"""Windows of one element that skip places: what they see is copied first, and lies in one piece.

Then the convolution is a product of matrices.
"""

from dataclasses import replace

from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.conv.parts import Source
from relax_egraph.lower.schedule.loops import ZERO, store_loops
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import Binary, Buffer
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import Stmt


def skips(c: Convolution) -> bool:
    """Whether `c` sees single places, which lie apart in lines, and data alone."""
    return (
        c.groups == 1
        and Source.of(c).places_last
        and all(w.size == 1 for w in c.windows)
        and c.windows[-1].stride > 1
        and any(load.buffer is c.data for load in loads(c.stage.value))
    )


def thinned(c: Convolution, names: Names) -> tuple[Convolution, Stmt]:
    """`c` of a copy of what it sees of its data, and the copy."""
    axes = (c.batch, Axis(c.channel, c.channels), *c.positions)
    copy = Buffer(names.fresh("thin"), tuple(a.extent for a in axes), "float32")
    at = tuple(a.var for a in axes)
    batch, channel, *positions = at
    seen = [p * w.stride for p, w in zip(positions, c.windows, strict=True)]
    stage = Stage("thin", copy, axes, at, Source.of(c).at(batch, seen, channel))
    windows = tuple(replace(w, stride=1, extent=w.position.extent) for w in c.windows)
    image = ZERO if c.batch.extent == 1 else batch
    product = replace(c.stage, value=Binary("*", copy[(image, *at[1:])], c.weight))
    return (
        replace(c, stage=product, data=copy, windows=windows, image=ZERO),
        store_loops((stage,), names, "parallel"),
    )
