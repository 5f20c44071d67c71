"""Instances of reductions."""

from collections.abc import Mapping, Sequence

from tests.ops.case import ANY, FLOATS, Case, Draw, Sampler


def reduction(dtypes: Sequence[str]) -> Sampler:
    """Reductions of any axes, or of all."""

    def sample(draw: Draw) -> Case:
        shape = draw.shape()
        axis = draw.axes(len(shape)) if draw.chance(0.7) else None
        attrs = {"axis": axis, "keepdims": draw.chance()}
        return Case((draw.array(shape, draw.choice(dtypes)),), attrs, 2e-5)

    return sample


SAMPLERS: Mapping[str, Sampler] = {
    **dict.fromkeys(["sum", "max", "min"], reduction(ANY)),
    "mean": reduction(FLOATS),
}
