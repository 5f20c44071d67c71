"""The images of a batch, processed one after the other.

If data is copied first, the copy of an image is still in the cache when it is read.
"""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.lower.schedule.conv.convolution import Convolution
from relax_egraph.lower.schedule.loops import bound
from relax_egraph.lower.schedule.names import Names
from relax_egraph.lower.schedule.stages import Axis, Stage

FEWEST_POSITIONS = 256
"""The minimal positions of an image; with fewer, threads would share too little."""


def are_large(c: Convolution) -> bool:
    """Whether there may be several images that are large enough to keep all threads busy."""
    positions = dims.product(a.extent for a in c.positions)
    may_be_several = not isinstance(c.batch.extent, int) or c.batch.extent > 1
    return may_be_several and isinstance(positions, int) and positions >= FEWEST_POSITIONS


def of_image(
    c: Convolution, rest: Sequence[Stage], names: Names
) -> tuple[Axis, Convolution, tuple[Stage, ...]]:
    """The loop over images, the convolution of one image, and the stages that follow it."""
    images = Axis(names.var("b"), c.batch.extent)

    def of_one(stage: Stage) -> Stage:
        axes = tuple(a for a in stage.axes if a.var is not c.batch.var)
        return replace(bound(stage, {c.batch.var: images.var}), axes=axes)

    batch = Axis(names.var("b"), 1)
    one = replace(c, stage=of_one(c.stage), batch=batch, image=images.var)
    return images, one, tuple(map(of_one, rest))
